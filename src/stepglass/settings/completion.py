"""Scripts that complete `stepglass` in bash, zsh and fish: commands, flags, fixed values, files.

They are made from the settings of every command, so they know what the command line knows. A script
is written to a file once. It does not start Python when a key is pressed.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from stepglass.errors import ConfigError
from stepglass.settings.command_line import recipe_names
from stepglass.settings.log_to import LOGGERS
from stepglass.settings.schema import Settings
from stepglass.units import shown

USAGE = """\
usage: stepglass completion bash|zsh|fish

Prints a script that completes commands, flags, values and files. To install it:

  bash  stepglass completion bash > ~/.local/share/bash-completion/completions/stepglass
  zsh   stepglass completion zsh > ~/.zfunc/_stepglass
  fish  stepglass completion fish > ~/.config/fish/completions/stepglass.fish

The folder must exist. zsh needs it in its fpath, before compinit: fpath+=~/.zfunc in ~/.zshrc.
"""
# Values of settings that take any text: those that are known.
KNOWN_VALUES: dict[str, tuple[str, ...]] = {
    "device": ("auto", "cpu", "cuda", "mps"),
    "init_from": ("scratch", "resume"),
    "log_to": tuple(LOGGERS),
    "tokenizer": ("char", "bpe", "gpt2"),
}
RUN_FOLDERS = ("resume", "sample", "watch", "runs")  # these commands take a folder
DATA_SETS = ("shakespeare", "tinyshakespeare", "pystdlib")


class Described(NamedTuple):
    """A command: what it does, and its settings if it has any."""

    meaning: str
    settings: Settings | None


class Flag(NamedTuple):
    """A flag: what can be written after it, and what it means."""

    name: str
    values: tuple[str, ...]
    is_path: bool
    is_switch: bool  # on or off: the name alone switches it on
    meaning: str


Commands = Mapping[str, Described]


def completion_script(argv: list[str], commands: Commands) -> str:
    """The script for the shell that the command line names."""
    if len(argv) != 1 or argv[0] not in SCRIPTS:
        found = shown(" ".join(argv)) if argv else "nothing"
        raise ConfigError(f"completion expects {' or '.join(SCRIPTS)}, found {found}")
    return SCRIPTS[argv[0]](commands)


def flags_of(settings: Settings | None) -> Iterator[Flag]:
    if settings is None:
        return
    for key, (name, _, _, meaning) in zip(settings.names(), settings.table(), strict=True):
        values = tuple(settings.choices(key)) or KNOWN_VALUES.get(name, ())
        if name == "recipe":
            values = ("auto", *recipe_names(), "none")
        is_switch = set(values) == {"True", "False"}
        yield Flag(f"--{name}", values, settings.is_path(key), is_switch, meaning)


def fixed_words(name: str, commands: Commands) -> tuple[str, ...]:
    """The words that a command takes, beside files and folders."""
    fixed = {"help": tuple(commands), "completion": tuple(SCRIPTS)}
    return fixed.get(name) or (DATA_SETS if name in ("prepare", "train") else ())


# -- bash ---------------------------------------------------------------------------------------

BASH = """\
# Completes stepglass in bash 4.4 or newer.
_stepglass() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
    local command=${COMP_WORDS[1]} flag= flags= words= values= switch= IFS=$' \\t\\n'
    COMPREPLY=()
    if (( COMP_CWORD == 1 )); then
        COMPREPLY=($(compgen -W "@COMMANDS@ help --help --version" -- "$word"))
        return
    fi
    case $command in
@PER_COMMAND@
    esac
    # bash breaks words at the equals sign
    if [[ $word == '=' ]]; then flag=$before word=
    elif [[ $before == '=' ]]; then flag=${COMP_WORDS[COMP_CWORD-2]}
    elif [[ $before == --* && $word != -* ]]; then flag=$before switch=no
    fi
    if [[ -n $flag ]]; then
        case "$command $flag$switch" in
@PER_FLAG@
        esac
        if [[ -n $values ]]; then COMPREPLY=($(compgen -W "$values" -- "$word")); return; fi
        # the shell itself completes files
        [[ -z $switch || " $flags " == *" $flag= "* ]] && return
    fi
    if [[ $word == -* ]]; then
        COMPREPLY=($(compgen -W "$flags --help" -- "$word"))
        [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace
        return
    fi
    case $command in
        @FOLDERS@) mapfile -t COMPREPLY < <(compgen -d -- "$word"); compopt -o filenames ;;
        completion|help) COMPREPLY=($(compgen -W "$words" -- "$word")) ;;
        *)
            mapfile -t COMPREPLY < <(
                compgen -W "$words" -- "$word"
                [[ $command == train ]] && (cd data 2>/dev/null && compgen -d -- "$word")
                compgen -f -- "$word"
            )
            compopt -o filenames
            ;;
    esac
}
complete -o bashdefault -o default -F _stepglass stepglass
"""


def bash_script(commands: Commands) -> str:
    per_command, per_flag = [], []
    for name in (*commands, "help"):
        flags = list(flags_of(commands[name].settings)) if name in commands else []
        names = " ".join(flag.name if flag.is_switch else f"{flag.name}=" for flag in flags)
        words = " ".join(fixed_words(name, commands))
        per_command.append(f"        {name}) flags='{names}' words='{words}' ;;")
        for flag in flags:
            if flag.values:
                # After a switch and a space comes another word, not its value.
                pattern = f"'{name} {flag.name}'" + ("" if flag.is_switch else "*")
                per_flag.append(f"            {pattern}) values='{' '.join(flag.values)}' ;;")
    return _filled(
        BASH,
        COMMANDS=" ".join(commands),
        FOLDERS="|".join(RUN_FOLDERS),
        PER_COMMAND="\n".join(per_command),
        PER_FLAG="\n".join(per_flag),
    )


# -- zsh ----------------------------------------------------------------------------------------

ZSH = """\
#compdef stepglass
# Completes stepglass in zsh.
_stepglass() {
    local -a commands
    commands=(
@COMMANDS@
    )
    if (( CURRENT == 2 )); then
        _describe -t commands command commands
        return
    fi
    local command=$words[2]
    local -a made
    made=(data/*(/N:t))
    shift words
    (( CURRENT-- ))
    case $command in
@PER_COMMAND@
    esac
}
if [[ $funcstack[1] == _stepglass ]]; then
    _stepglass "$@"
else
    compdef _stepglass stepglass
fi
"""


def zsh_script(commands: Commands) -> str:
    described = [
        _quoted(f"{name}:{command.meaning}") for name, command in _with_help(commands).items()
    ]
    per_command = []
    for name, command in _with_help(commands).items():
        specs = [_zsh_flag(flag) for flag in flags_of(command.settings)]
        words = fixed_words(name, commands)
        if name in ("completion", "help"):
            rest = f"*:word:({' '.join(words)})"
        elif name in RUN_FOLDERS:
            rest = "*:folder:_files -/"
        elif name == "train":
            rest = f"*:text or data set:{{_alternative 'sets:data set:({' '.join(words)})' "
            rest += "'made:data set:compadd -a made' 'files:file:_files'}"
        elif words:
            rest = f"*:text:{{_alternative 'sets:data set:({' '.join(words)})' "
            rest += "'files:file:_files'}"
        else:
            rest = "*:file:_files"
        specs += [_quoted("--help[show help]"), _quoted(rest)]
        lines = " \\\n            ".join(["_arguments -s", *specs])
        per_command.append(f"        {name})\n            {lines} ;;")
    indented = "\n".join(f"        {text}" for text in described)
    return _filled(ZSH, COMMANDS=indented, PER_COMMAND="\n".join(per_command))


def _zsh_flag(flag: Flag) -> str:
    """For example `--model=[architecture]:value:(modern gpt2)`, in quotes."""
    meaning = flag.meaning
    for sign in ("\\", "[", "]", ":"):
        meaning = meaning.replace(sign, "\\" + sign)
    action = f"({' '.join(flag.values)})" if flag.values else "_files" if flag.is_path else " "
    if flag.is_switch:
        return _quoted(f"{flag.name}=-[{meaning}]::value:{action}")
    return _quoted(f"{flag.name}=[{meaning}]:value:{action}")


# -- fish ---------------------------------------------------------------------------------------


FISH = """\
# Completes stepglass in fish.
function __stepglass_command
    set -l words (commandline -opc)
    test "$words[2]" = "$argv[1]"
end"""


def fish_script(commands: Commands) -> str:
    every = _with_help(commands)
    lines = [FISH, "complete -c stepglass -f"]
    for name, command in every.items():
        lines.append(
            f"complete -c stepglass -n __fish_use_subcommand -a {name} -d "
            f"{_fish_quoted(command.meaning)}"
        )
    for name, command in every.items():
        start = f"complete -c stepglass -n '__stepglass_command {name}'"
        for flag in flags_of(command.settings):
            takes = f" -x -a {_fish_quoted(' '.join(flag.values))}" if flag.values else " -x"
            if flag.is_switch:
                takes = ""
            elif flag.is_path:
                takes = " -r -F"
            lines.append(
                f"{start} -l {flag.name.removeprefix('--')}{takes} -d {_fish_quoted(flag.meaning)}"
            )
        if words := fixed_words(name, commands):
            lines.append(f"{start} -a {_fish_quoted(' '.join(words))}")
        if name in RUN_FOLDERS:
            lines.append(f"{start} -a '(__fish_complete_directories)'")
        elif name not in ("completion", "help"):
            lines.append(f"{start} -F")
        if name == "train":
            lines.append(f"{start} -a '(path basename -- data/*/)' -d 'data set'")
    return "\n".join([*lines, ""])


def _with_help(commands: Commands) -> Commands:
    return {**commands, "help": Described("show the settings of a command", None)}


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _filled(template: str, **parts: str) -> str:
    for name, text in parts.items():
        template = template.replace(f"@{name}@", text)
    return template


SCRIPTS: dict[str, Callable[[Commands], str]] = {
    "bash": bash_script,
    "zsh": zsh_script,
    "fish": fish_script,
}
