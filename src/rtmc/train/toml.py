"""Configurations as TOML: a file, or a preset; values that replace some of it; written out."""

import json
import re
import tomllib
from collections.abc import Iterator
from difflib import get_close_matches
from importlib import resources
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

import msgspec

from rtmc.errors import FormatError, OptionError
from rtmc.train.config import TrainConfig

__all__ = ["dumps", "load", "presets"]

NONE = "none"
"""What ``--set`` takes for no value, which TOML cannot say."""


def presets() -> dict[str, Path]:
    """List the configurations that come with the package, by name."""
    folder = Path(str(resources.files("rtmc.train") / "presets"))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def load(name: str, sets: dict[str, str] | None = None) -> TrainConfig:
    """Read a configuration.

    Args:
        name: a TOML file, or a preset.
        sets: values that replace its own, as ``{"credit.estimator": "grpo"}``; read as TOML, or as
            text where they are none; ``none`` for no value where there may be none.

    Raises:
        OptionError: there is no such file or preset, or the settings do not fit together.
        FormatError: it is no TOML, there is no such key, or a value is of the wrong kind.
    """
    path = presets().get(name) or Path(name)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OptionError(
            f"cannot read {name}: {error.strerror}; expected a TOML file, or one of "
            f"{', '.join(presets())}"
        ) from error
    except ValueError as error:
        raise FormatError(f"{path}: {error}; expected TOML") from error
    where, wrong = str(path), _trouble(table)
    for key, value in (sets or {}).items():
        _set(table, key, value)
    if _trouble(table) != wrong:
        where = "--set"
    return _made(table, where)


def _trouble(table: dict[str, Any]) -> str | None:
    try:
        _made(table, "")
    except (FormatError, OptionError) as error:
        return str(error)
    return None


def _made(table: dict[str, Any], where: str) -> TrainConfig:
    """Make a configuration of a table."""
    for key, known in _unknown(table, TrainConfig):
        section, _, last = key.rpartition(".")
        near = [k for k in KEYS if k.endswith(f".{last}")] or get_close_matches(key, KEYS, 1, 0.7)
        meant = f"did you mean {' or '.join(near)}? " if near else ""
        of = f"[{section}]" if section else "a configuration"
        raise FormatError(f"{where}: there is no {key}; {meant}{of} has {', '.join(known)}")
    try:
        return msgspec.convert(table, TrainConfig)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, OptionError):
            raise OptionError(f"{where}: {error.__cause__}") from None
        says, _, at = str(error).partition(" - at ")
        key = re.sub(r"[`$]\.?", "", at)
        raise FormatError(f"{where}: {key}: {says.replace('`', '')}") from error


def _unknown(
    table: dict[str, Any], of: type[msgspec.Struct], prefix: str = ""
) -> Iterator[tuple[str, list[str]]]:
    """Find keys that a struct and the structs in it do not have, each with those there are."""
    known = {field.name: field.type for field in msgspec.structs.fields(of)}
    for key, value in table.items():
        if key not in known:
            yield f"{prefix}{key}", list(known)
        elif _is_section(known[key]) and isinstance(value, dict):
            yield from _unknown(value, known[key], f"{prefix}{key}.")


def _keys(of: type[msgspec.Struct], prefix: str = "") -> Iterator[str]:
    """List all keys, those in sections by dotted names."""
    for field in msgspec.structs.fields(of):
        yield prefix + field.name
        if _is_section(field.type):
            yield from _keys(field.type, f"{prefix}{field.name}.")


def _is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _set(table: dict[str, Any], key: str, value: str) -> None:
    """Set a value by its dotted name."""
    *sections, last = key.split(".")
    kind: Any = TrainConfig
    for section in sections:
        kind = _kind_of(kind, section)
        table = table.setdefault(section, {})
        if not isinstance(table, dict):
            raise OptionError(f"--set {key}: {section} is no section")
    if value == NONE and NoneType in get_args(_kind_of(kind, last)):
        table[last] = None
        return
    try:
        table[last] = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        table[last] = value


def _kind_of(kind: Any, name: str) -> Any:
    """Give the type of a field, None where there is no such field."""
    return get_type_hints(kind).get(name) if _is_section(kind) else None


def dumps(config: TrainConfig) -> str:
    """Write all of a configuration as TOML; values that are None are left out."""
    table = msgspec.to_builtins(config)
    plain = {key: value for key, value in table.items() if not isinstance(value, dict)}
    sections = {key: value for key, value in table.items() if isinstance(value, dict)}
    lines = list(_lines(plain))
    for name, section in sections.items():
        lines += ["", f"[{name}]", *_lines(section)]
    return "\n".join(lines) + "\n"


def _lines(table: dict[str, Any]) -> Iterator[str]:
    for key, value in table.items():
        if value is not None:
            yield f"{_key(key)} = {_value(value)}"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)


KEYS = list(_keys(TrainConfig))
