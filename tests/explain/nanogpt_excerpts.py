"""Excerpts of nanoGPT's logs, as people have posted them."""

SLOW_ITERATIONS = """\
iter 0: time 12543ms
iter 100: time 168ms
iter 200: time 170ms
iter 300: time 171ms
iter 400: time 169ms
step 500: train loss..., val loss...
saving checkpoint
iter 500: loss..., time 5985ms
iter 600: time 172ms
iter 900: time 168ms
step 1000: train loss..., val loss...
saving checkpoint
iter 1000: loss..., time 5726ms
"""

LAST_LINES = """\
iter 4980: loss 0.8010, time 33.22ms, mfu 11.07%
iter 4990: loss 0.8212, time 33.23ms, mfu 11.09%
step 5000: train loss 0.6224, val loss 1.7044
iter 5000: loss 0.8236, time 4446.83ms, mfu 9.99%
"""

# nanoGPT#215: a V100 in float16. The MFU column and the timestamps prove where 35 s went.
V100 = """\
2023-03-22 09:31:34 iter 2970: loss 3.9011, time 1097.61ms, mfu 15.34%
2023-03-22 09:31:45 iter 2980: loss 3.9644, time 1097.40ms, mfu 15.34%
2023-03-22 09:31:56 iter 2990: loss 3.8853, time 1096.65ms, mfu 15.34%
2023-03-22 09:32:32 step 3000: train loss 4.0390, val loss 4.0427
saving checkpoint to out
2023-03-22 09:32:41 iter 3000: loss 4.2490, time 35392.33ms, mfu 13.85%
2023-03-22 09:32:52 iter 3010: loss nan, time 1019.95ms, mfu 14.12%
2023-03-22 09:33:02 iter 3020: loss nan, time 1017.20ms, mfu 14.36%
2023-03-22 09:33:12 iter 3030: loss nan, time 1016.80ms, mfu 14.58%
2023-03-22 09:33:23 iter 3040: loss nan, time 1017.10ms, mfu 14.78%
"""

# nanoGPT PR#673: four GPUs, an evaluation every second step, so every other line is slow.
EVERY_OTHER = """\
step 0: train loss 10.9886, val loss 10.9897
iter 0: loss 10.9766, time 26086.69ms, mfu -100.00%
iter 1: loss 10.9558, time 813.91ms, mfu -100.00%
step 2: train loss 10.9370, val loss 10.9377
saving checkpoint to out
iter 2: loss 10.9481, time 20176.69ms, mfu -100.00%
iter 3: loss 10.8799, time 923.17ms, mfu -100.00%
step 4: train loss 10.8181, val loss 10.8185
saving checkpoint to out
iter 4: loss 10.8340, time 20753.85ms, mfu -100.00%
iter 5: loss 10.7294, time 923.15ms, mfu 36.47%
step 6: train loss 10.6521, val loss 10.6532
saving checkpoint to out
iter 6: loss 10.6651, time 20960.05ms, mfu 32.98%
iter 7: loss 10.5586, time 923.50ms, mfu 33.33%
step 8: train loss 10.4676, val loss 10.4699
saving checkpoint to out
iter 8: loss 10.4841, time 20972.46ms, mfu 30.16%
iter 9: loss 10.4411, time 924.84ms, mfu 30.78%
"""

# A five-minute stall between two evaluations.
STALLED = """\
iter 220: loss 2.1100, time 331.12ms, mfu 1.11%
iter 230: loss 2.0977, time 332.57ms, mfu 1.11%
iter 240: loss 2.1005, time 309784.28ms, mfu 1.00%
step 250: train loss 1.9921, val loss 2.0831
saving checkpoint to out-shakespeare-char
iter 250: loss 2.0691, time 79104.90ms, mfu 0.90%
iter 260: loss 2.0211, time 330.90ms, mfu 0.92%
"""
