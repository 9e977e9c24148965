"""Reads the program's messages from its C++ sources, and those that the page of troubleshooting explains.

`...` stands for a value.
"""

import itertools
import re

TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\((?P<raw>.*?)\)\1"|"(?P<text>(?:\\.|[^"\\\n])*)"'
    r"|'(?:\\.|[^'\\\n])*'|\d[\w'.]*|\w+|\S", re.DOTALL)
# The functions that make messages, and their arguments.
ARGUMENTS = {"fail_input": ["what", "why", "where", "hint"], "fail_errno": ["what"], "refuse": ["where", "what", "hint"],
             "warn": ["what"], "die": ["what"]}


def read_tokens(source):
    """The tokens without comments, as nested lists: a bracket and what is in it. Literals begin with a quotation mark."""
    groups = [[]]
    for token in TOKEN.finditer(source):
        if (text := token["raw"] or token["text"]) is not None:
            groups[-1].append('"' + re.sub(r"\\(.)", lambda escape: {"n": " "}.get(escape[1], escape[1]), text))
        elif token[0] in "([{":
            groups.append([token[0]])
        elif token[0] in ")]}":
            groups[-2].append(groups.pop())
        elif not token[0].startswith(("//", "/*")):
            groups[-1].append(token[0])
    return groups[0]


def split(tokens, separator):
    return [list(part) for is_separator, part in itertools.groupby(tokens, lambda token: token == separator) if not is_separator]


def texts(tokens):
    """The texts that an expression can give."""
    if "?" in tokens:
        choices = tokens[tokens.index("?") + 1:]
        return texts(choices[:choices.index(":")]) + texts(choices[choices.index(":") + 1:])
    if "+" in tokens:
        return ["".join(parts) for parts in itertools.product(*map(texts, split(tokens, "+")))]
    if all(token[0] in '"{' for token in tokens):  # literals, or {}
        return ["".join(token[1:] for token in tokens if isinstance(token, str))]
    name, arguments = tokens[-2] if len(tokens) > 1 else "", split(tokens[-1][1:], ",")
    if isinstance(tokens[-1], list) and name in ("", "string", "format") and arguments:
        return [re.sub(r"\{[^}]*\}", "...", text) if name == "format" else text for text in texts(arguments[0])]
    return ["..."]


def fields_of(before, group):
    """The texts of `what`, `why` and `hint` in a call of a function or in an initialisation of an Error."""
    arguments = split(group[1:], ",")
    if group[0] == "{":
        return {field[1]: texts(field[3:]) for field in arguments if field[0] == "." and field[2:3] == ["="]}
    fields = dict(zip(ARGUMENTS.get(before, []), map(texts, arguments)))
    if before == "refuse" and fields.get("where") != ["..."]:
        return {}  # another function of that name
    if before == "fail_errno":
        fields["why"] = ["..."]
    if before == "warn":
        fields["what"] = ["warning: " + text for text in fields.get("what", [])]
    return fields


def messages_in(tokens):
    """The fields of each message. Hints that are assigned to a variable `error` later follow on their own."""
    for i, token in enumerate(tokens):
        if isinstance(token, list):
            before = tokens[i - 1] if i > 0 and isinstance(tokens[i - 1], str) else ""
            if "what" in (fields := fields_of(before, token)):
                yield fields | {"is variable": before == "error"}
            yield from messages_in(token)
        elif tokens[max(i - 2, 0):i + 1] == ["error", ".", "hint"] and "=" in tokens[i + 1:i + 3]:
            assigned = itertools.takewhile(lambda one: one != ";", tokens[tokens.index("=", i) + 1:])
            yield {"hint": texts(list(assigned))}


def literals_in(tokens):
    for is_literal, part in itertools.groupby(tokens, lambda token: token[0][0] == '"'):
        if is_literal:
            yield "".join(token[1:] for token in part)
        else:
            yield from itertools.chain.from_iterable(literals_in(token[1:]) for token in part if isinstance(token, list))


def sources(root):
    return [read_tokens(file.read_text()) for file in sorted([*root.glob("src/*/*.cpp"), *root.glob("wrappers/*.cpp")])]


def read_literals(root):
    return [text for tokens in sources(root) for text in literals_in(tokens)]


def read_messages(root):
    """Maps each message, as it is printed, to its hints."""
    messages = {}
    for tokens in sources(root):
        last = {}
        for fields in messages_in(tokens):
            last = fields if "what" in fields else last if last.get("is variable") else {}
            hints = {hint.strip(): None for hint in fields.get("hint", []) if re.search("[a-z]", hint)}
            for what, why in itertools.product(last.get("what", []), last.get("why", [""])):
                if re.search("[a-z]", what.removeprefix("warning: ")):
                    messages.setdefault(re.sub(r"(\.{3})+", "...", f"{what}: {why}" if why else what), {}).update(hints)
    return messages


EXPLAINED = re.compile(r"^\| (`.*?) \| (?=.*\|$)", re.MULTILINE)  # the first column of the table in troubleshooting.md


def quotes_in(cell):
    return re.findall("`([^`]+)`", cell)


def is_quoted(message, cell):
    """Whether a cell of that column has the message. `...` in either of them stands for any text."""
    def pattern(text):
        return ".*".join(map(re.escape, text.split("...")))

    return any(re.search(pattern(quote), message) or re.fullmatch(pattern(message), quote) for quote in quotes_in(cell))
