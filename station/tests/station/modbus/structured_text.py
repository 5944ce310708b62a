"""Runs a function block in structured text (IEC 61131-3), as far as examples/inspection.st needs the language."""

import re
import time

TOKEN = re.compile(r"""\s+|\(\*.*?\*\)|(?P<time>T\#\d+(?:MS|S))|(?P<hex>16\#[0-9A-F]+)|(?P<number>\d+)
    |(?P<name>[A-Za-z_]\w*)|(?P<sign>:=|<>|<=|>=|\.\.|[-+*/=<>()\[\],;:.])""", re.X | re.S)
BITS = {"WORD": 16, "UINT": 16, "UDINT": 32, "INT": 16}
LEVELS = [["OR"], ["AND"], ["=", "<>"], ["<", ">", "<=", ">="], ["+", "-"], ["*", "/", "MOD"]]
OPERATORS = {
    "OR": lambda a, b: a | b, "AND": lambda a, b: a & b, "=": lambda a, b: a == b, "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b, ">": lambda a, b: a > b, "<=": lambda a, b: a <= b, ">=": lambda a, b: a >= b,
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a // b,
    "MOD": lambda a, b: a % b,
}


class Ton:
    """Q is true once IN was true for PT."""

    def __init__(self):
        self.since, self.Q = None, False

    def call(self, IN, PT):
        self.since = (self.since or time.monotonic()) if IN else None
        self.Q = bool(IN) and time.monotonic() - self.since >= PT


class RTrig:
    """Q is true for the call in which CLK rises."""

    def __init__(self):
        self.before, self.Q = False, False

    def call(self, CLK):
        self.Q, self.before = CLK and not self.before, CLK


class Block:
    """The variables, and the statements."""

    def __init__(self, text):
        self.tokens = []
        at = 0
        while at < len(text):
            found = TOKEN.match(text, at)
            assert found, text[at:at + 40]
            at = found.end()
            if found.lastgroup:
                self.tokens.append((found.lastgroup, found[found.lastgroup]))
        self.at = 0
        self.types, self.values = {}, {}
        self.expect("FUNCTION_BLOCK")
        self.take()
        while self.peek() in ("VAR_INPUT", "VAR_OUTPUT", "VAR"):
            self.take()
            while not self.accept("END_VAR"):
                self.declare()
        self.statements = self.block("END_FUNCTION_BLOCK")

    def __call__(self, **inputs):
        for name, value in inputs.items():
            self.assign(name, None, value)
        self.run(self.statements)

    def __getattr__(self, name):
        return self.values[name]

    # Tokens.

    def peek(self):
        return self.tokens[self.at][1]

    def take(self):
        self.at += 1
        return self.tokens[self.at - 1]

    def accept(self, text):
        if self.peek() != text:
            return False
        self.at += 1
        return True

    def expect(self, text):
        assert self.accept(text), (text, self.tokens[self.at - 5:self.at + 5])

    # The grammar.

    def declare(self):
        names = [self.take()[1]]
        while self.accept(","):
            names.append(self.take()[1])
        self.expect(":")
        kind, count = self.take()[1], 0
        if kind == "ARRAY":
            self.expect("[")
            self.expect("0")
            self.expect("..")
            count = int(self.take()[1]) + 1
            self.expect("]")
            self.expect("OF")
            kind = self.take()[1]
        value = self.literal(*self.take()) if self.accept(":=") else {"TON": Ton, "R_TRIG": RTrig, "BOOL": bool}.get(kind, int)
        self.expect(";")
        for name in names:
            self.types[name] = kind
            first = value() if callable(value) else value
            self.values[name] = [first] * count if count else first

    @staticmethod
    def literal(kind, text):
        if kind == "time":
            return int(re.sub(r"\D", "", text)) / (1000 if text.endswith("MS") else 1)
        return int(text[3:], 16) if kind == "hex" else {"TRUE": True, "FALSE": False}.get(text) if kind == "name" else int(text)

    def block(self, *ends):
        statements = []
        while self.peek() not in ends and not (self.tokens[self.at][0] == "number" and "END_CASE" in ends):
            statements.append(self.statement())
        if len(ends) == 1:
            self.expect(ends[0])
        return statements

    def statement(self):
        if self.accept("IF"):
            branches = [self.branch()]
            while self.accept("ELSIF"):
                branches.append(self.branch())
            if self.accept("ELSE"):
                branches.append((("literal", True), self.block("END_IF", "END_IF")))
            self.expect("END_IF")
            self.expect(";")
            return "if", branches
        if self.accept("CASE"):
            value, branches = self.expression(), {}
            self.expect("OF")
            while not self.accept("END_CASE"):
                label = int(self.take()[1])
                self.expect(":")
                branches[label] = self.block("END_CASE", "END_CASE")
            self.expect(";")
            return "case", value, branches
        name = self.take()[1]
        if self.accept("("):
            arguments = {}
            while not self.accept(")"):
                key = self.take()[1]
                self.expect(":=")
                arguments[key] = self.expression()
                self.accept(",")
            self.expect(";")
            return "call", name, arguments
        index = None
        if self.accept("["):
            index = self.expression()
            self.expect("]")
        self.expect(":=")
        value = self.expression()
        self.expect(";")
        return "assign", name, index, value

    def branch(self):
        condition = self.expression()
        self.expect("THEN")
        return condition, self.block("ELSIF", "ELSE", "END_IF")

    def expression(self, level=0):
        if level == len(LEVELS):
            return self.unary()
        left = self.expression(level + 1)
        while self.peek() in LEVELS[level]:
            sign = self.take()[1]
            left = ("both", sign, left, self.expression(level + 1))
        return left

    def unary(self):
        if self.accept("NOT"):
            return "not", self.unary()
        if self.accept("("):
            inner = self.expression()
            self.expect(")")
            return inner
        kind, text = self.take()
        if kind != "name" or text in ("TRUE", "FALSE"):
            return "literal", self.literal(kind, text)
        if self.accept("("):
            # WORD_TO_UINT and the like.
            inner = self.expression()
            self.expect(")")
            return "convert", text.split("_TO_")[1], inner
        if self.accept("["):
            index = self.expression()
            self.expect("]")
            return "element", text, index
        if self.accept("."):
            return "member", text, self.take()[1]
        return "variable", text

    # What it means.

    def run(self, statements):
        for kind, *parts in statements:
            if kind == "if":
                for condition, inner in parts[0]:
                    value = self.value(condition)
                    assert isinstance(value, bool), condition
                    if value:
                        self.run(inner)
                        break
            elif kind == "case":
                self.run(parts[1].get(self.value(parts[0]), []))
            elif kind == "call":
                self.values[parts[0]].call(**{key: self.value(of) for key, of in parts[1].items()})
            else:
                name, index, value = parts
                self.assign(name, index and self.value(index), self.value(value))

    def assign(self, name, index, value):
        kind = self.types[name]
        if isinstance(value, list):
            self.values[name] = list(value)
            return
        assert isinstance(value, bool) == (kind == "BOOL"), (name, value)
        value = value if kind == "BOOL" else value % (1 << BITS[kind])
        if index is None:
            self.values[name] = value
        else:
            self.values[name][index] = value

    def value(self, of):
        kind, *parts = of
        if kind == "both":
            return OPERATORS[parts[0]](self.value(parts[1]), self.value(parts[2]))
        if kind == "not":
            return not self.value(parts[0])
        if kind == "literal":
            return parts[0]
        if kind == "convert":
            return self.value(parts[1]) % (1 << BITS[parts[0]])
        if kind == "element":
            return self.values[parts[0]][self.value(parts[1])]
        if kind == "member":
            return getattr(self.values[parts[0]], parts[1])
        return self.values[parts[0]]
