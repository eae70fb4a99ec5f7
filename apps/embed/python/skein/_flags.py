"""Flags as the engine's words and as Python's values."""


def words_of(flags):
    return {name.replace("_", "-"): _word(value) for name, value in flags.items()}


def values_of(words):
    return {name.replace("-", "_"): _value(word) for name, word in words.items()}


def _value(word):
    if word in ("true", "false"):
        return word == "true"
    try:
        return int(word)
    except ValueError:
        pass
    try:
        return float(word)
    except ValueError:
        return word


def _word(value):
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)
