#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rules of the house that no compiler checks. See README.md beside this file.

lint.py ROOT         names every violation in the files that git knows under ROOT; exit code 1 if there is one.
lint.py --self-test  shows that each rule finds a violation planted for it and accepts what is allowed.

A rule is a row of RULES: a name, why it is one, which files it looks at, a function from a file to its violations, and
two examples for the self-test. LAYERS says which room may include which.
"""

import fnmatch
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

# ---- who may include whom -------------------------------------------------------------------------------------------

# Room: the rooms that it may include besides itself. The longest prefix of a path that stands here is its room.
_BASE = ["host/base"]
_OPERATOR_PURE = _BASE + ["operator/api"]
_OPERATOR_KUBE = _OPERATOR_PURE + ["operator/kube"]
_OPERATOR_RUNTIME = _OPERATOR_KUBE + ["host/client", "operator/runtime"]
_OPERATOR_POLLING = _OPERATOR_RUNTIME + ["operator/scaling", "operator/polling"]
_OPERATOR_SIBLINGS = ["operator/reconcile", "operator/adapter", "operator/introspection", "operator/webhook"]
_OPERATOR_LOCAL = _OPERATOR_POLLING + _OPERATOR_SIBLINGS + ["host/kit", "operator/local"]
LAYERS = {
    "host/base": [],
    "host/client": _BASE,
    "host/kit": _BASE,
    "plugins": _BASE + ["host/kit"],  # each folder below is a room of its own: see room_of()
    "operator/api": _BASE,
    "operator/scaling": _OPERATOR_PURE,
    "operator/kube": _OPERATOR_PURE,
    "operator/runtime": _OPERATOR_KUBE,
    "operator/polling": _OPERATOR_RUNTIME + ["operator/scaling"],
    "operator/reconcile": _OPERATOR_POLLING,
    "operator/adapter": _OPERATOR_POLLING,
    "operator/webhook": _OPERATOR_POLLING,
    "operator/introspection": _OPERATOR_POLLING + ["host/kit"],
    "operator/local": _OPERATOR_POLLING + _OPERATOR_SIBLINGS + ["host/kit"],
    "operator/ctl": _OPERATOR_LOCAL,
    "operator": _OPERATOR_LOCAL + ["operator/ctl"],  # main.cc and what wires beside it
}
# Rooms that know no wire: plain structs and decisions.
PURE = ["operator/api", "operator/scaling"]


def room_of(path: str) -> str:
    """The room of a file or of an include path; "" for what is in none."""
    parts = path.split("/")
    if parts[0] == "plugins":
        return "/".join(parts[:2]) if len(parts) > 2 else "plugins"
    for length in range(len(parts) - 1, 0, -1):
        prefix = "/".join(parts[:length])
        if prefix in LAYERS:
            return prefix
    return ""


def may_include(room: str) -> list[str]:
    return [room] + LAYERS["plugins" if room.startswith("plugins/") else room]


# ---- a source file --------------------------------------------------------------------------------------------------

_TOKENS = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:[^"\\\n]|\\.)*"|(?<![0-9a-fA-F])\'(?:[^\'\\\n]|\\.)*\'', re.S)


def _blank(match: re.Match) -> str:
    """Nothing but the line breaks, and the quotes of a literal, so that positions stay."""
    text = match.group(0)
    kept = re.sub(r"[^\n]", " ", text)
    return kept if text.startswith("/") else '"' + kept[1:-1] + '"'


class Source:
    def __init__(self, path: str, text: str):
        self.path = path
        self.text = text
        self.lines = text.split("\n")
        self._code = None

    @property
    def code(self) -> str:
        """The text with comments and literals blanked; every offset and line as in the file."""
        if self._code is None:
            includes = {m.start(): m.group(0) for m in re.finditer(r"^#include.*$", self.text, re.M)}
            code = _TOKENS.sub(_blank, self.text)
            for start, line in includes.items():
                code = code[:start] + line + code[start + len(line):]
            self._code = code
        return self._code

    def line_of(self, offset: int) -> int:
        return self.text.count("\n", 0, offset) + 1

    def includes(self) -> list[tuple[int, str]]:
        return [(self.line_of(m.start()), m.group(1))
                for m in re.finditer(r'^#include [<"]([^>"]+)[>"]', self.code, re.M)]


Violation = tuple[int, str]  # line, what is wrong


def find(pattern: str, message: str) -> Callable[[Source], list[Violation]]:
    """Every match of the pattern in code (not in comments and literals) is a violation."""
    compiled = re.compile(pattern)
    return lambda source: [(source.line_of(m.start()), f"{m.group(0).strip()}: {message}")
                           for m in compiled.finditer(source.code)]


# ---- the checks -----------------------------------------------------------------------------------------------------

def check_layers(source: Source) -> list[Violation]:
    room = room_of(source.path)
    if not room:
        return []
    violations = []
    for line, included in source.includes():
        target = room_of(included)
        if target and target not in may_include(room):
            violations.append((line, f"{room} may not include {target} ({included})"))
        if room in PURE and included.endswith(".pb.h"):
            violations.append((line, f"{room} is pure and may not include the wire ({included})"))
    return violations


def check_no_tests_included(source: Source) -> list[Violation]:
    return [(line, f"includes {included}: nothing but tests/ includes tests/")
            for line, included in source.includes() if included.startswith("tests/")]


def check_conditional_await(source: Source) -> list[Violation]:
    violations = []
    for match in re.finditer(r"\bco_await\b", source.code):
        start = max(source.code.rfind(mark, 0, match.start()) for mark in ";{}")
        if "?" in source.code[start + 1:match.start()]:
            violations.append((source.line_of(match.start()), "co_await in a conditional expression: name the parts"))
    return violations


# What may stand before the brace of a block; before that of an initialiser stand a name, '=', '(', ',' or `return`.
_BLOCK = re.compile(r"(\)|\belse|\bdo|\btry|\bconst|\bnoexcept|\boverride|\bfinal|\bmutable|->\s*[\w:<>,&*\s]+|[;{}:]|^)\s*$")


def check_await_in_initialiser(source: Source) -> list[Violation]:
    violations = []
    for match in re.finditer(r"\{[^{};]*\bco_await\b", source.code):
        before = source.code[max(0, match.start() - 200):match.start()]
        if not _BLOCK.search(before):
            violations.append((source.line_of(match.end()), "co_await in an initialiser list: name the value first"))
    return violations


_COMMENT_STYLE = {".cc": "// ", ".h": "// ", ".proto": "// ", ".go": "// ", ".js": "// ", ".ts": "// ", ".rs": "// "}


def check_spdx(source: Source) -> list[Violation]:
    mark = _COMMENT_STYLE.get(Path(source.path).suffix, "# ")
    head = source.lines[:2] if source.lines[0].startswith("#!") else source.lines[:1]
    wanted = mark + "SPDX-License-Identifier: Apache-2.0"
    return [] if wanted in head else [(1, f'want "{wanted}" as the first line, got "{head[-1]}"')]


def check_pragma_once(source: Source) -> list[Violation]:
    return [] if re.search(r"^#pragma once$", source.code, re.M) else [(1, "header without #pragma once")]


def check_headers_stay_light(source: Source) -> list[Violation]:
    heavy = re.compile(r"^(boost/asio|boost/beast|grpcpp/|grpc/|curl/|openssl/|hiredis/|librdkafka/|.*\.grpc\.pb\.h$)")
    return [(line, f"a header may not include {included}: it costs every file that includes this one seconds")
            for line, included in source.includes() if heavy.match(included)]


# Headers whose every includer costs 20 to 40 s to compile.
_COSTLY = re.compile(r"^(boost/beast|boost/asio/ssl|grpcpp/(grpcpp|server|security/server|ext/|health)|.*\.grpc\.pb\.h$)")
MAX_COSTLY_FILES = 15


def check_costly_files(sources: list[Source]) -> list[tuple[str, int, str]]:
    costly = [s.path for s in sources if any(_COSTLY.match(included) for _, included in s.includes())]
    if len(costly) <= MAX_COSTLY_FILES:
        return []
    return [(path, 1, f"one of {len(costly)} files that include Beast, Asio's SSL or gRPC servers; at most "
                      f"{MAX_COSTLY_FILES} may") for path in costly]


def check_machine_paths(source: Source) -> list[Violation]:
    # In pieces, so that this file is clean itself.
    pattern = re.compile(r"(?<![\w.$}/])/(" + "|".join(["root", "ho" + "me/\\w", "wo" + "rk", "Us" + "ers"]) + r")(?=[/\s\"']|\w/|$)")
    return [(number, f"{match.group(0)}: a path of one machine") for number, line in enumerate(source.lines, 1)
            for match in pattern.finditer(line)]


def check_nolint(source: Source) -> list[Violation]:
    pattern = re.compile(r"NOLINT(NEXTLINE|BEGIN|END)?(?!\w)(?P<rest>.*)")
    violations = []
    for number, line in enumerate(source.lines, 1):
        match = pattern.search(line)
        if not match:
            continue
        named = re.match(r"\([\w.,* -]+\)(?P<reason>.*)", match.group("rest"))
        if not named or (match.group(1) != "END" and len(named.group("reason").strip(" :/-")) < 5):
            violations.append((number, "NOLINT without the check's name and a reason"))
    return violations


# ---- the table ------------------------------------------------------------------------------------------------------

CPP = ["*.cc", "*.h"]
PRODUCT = ["host/*", "plugins/*", "operator/*"]
MAINS = ["*/main.cc"]


@dataclass
class Rule:
    name: str
    why: str
    check: Callable
    planted: tuple[str, str]  # path and text of a violation
    allowed: tuple[str, str]  # path and text of what is none
    files: tuple = tuple(CPP)
    under: tuple = ()  # folders; none: everywhere
    except_in: tuple = ()
    whole_tree: bool = False

    def applies(self, path: str) -> bool:
        def matches(patterns):
            return any(fnmatch.fnmatch(path, pattern) for pattern in patterns)

        return matches(self.files) and (not self.under or matches(self.under)) and not matches(self.except_in)


_HEAD = "// SPDX-License-Identifier: Apache-2.0\n"
RULES = [
    Rule("layers", "a wrong arrow between rooms fails the build, not the review (ARCHITECTURE.md)", check_layers,
         ("operator/scaling/a.cc", '#include "operator/kube/api.h"\n'),
         ("operator/reconcile/a.cc", '#include "operator/kube/api.h"\n// #include "operator/adapter/a.h"\n')),
    Rule("plugins are strangers", "plugins meet the operator and one another over gRPC only", check_layers,
         ("plugins/redis/a.cc", '#include "plugins/kafka/client.h"\n'),
         ("plugins/redis/a.cc", '#include "plugins/redis/client.h"\n#include "host/kit/serve.h"\n')),
    Rule("host knows no Kubernetes", "a plugin links the kit and nothing of the operator", check_layers,
         ("host/client/a.cc", '#include "operator/api/condition.h"\n'),
         ("host/client/a.cc", '#include "host/base/clock.h"\n')),
    Rule("siblings", "reconcile, adapter and introspection meet in main.cc and local only", check_layers,
         ("operator/adapter/a.h", '#include "operator/reconcile/leader_term.h"\n'),
         ("operator/main.cc", '#include "operator/reconcile/leader_term.h"\n')),
    Rule("pure rooms", "decisions are tested without a wire", check_layers,
         ("operator/api/a.h", '#include "outrigger/scaler/v1/scaler.pb.h"\n'),
         ("operator/polling/a.h", '#include "outrigger/scaler/v1/scaler.pb.h"\n')),
    Rule("tests stay tests", "no product file may need a test's", check_no_tests_included,
         ("host/base/a.cc", '#include "tests/support/wait_for.h"\n'),
         ("host/base/a.cc", '// as tests/support/wait_for.h does\n'), under=tuple(PRODUCT)),
    Rule("no conditional co_await", "compilers destroyed its temporaries twice (docs/adr/0001-compiler.md)",
         check_conditional_await,
         ("operator/a.cc", "auto x = ready\n    ? F()\n    : co_await G();"),
         ("operator/a.cc", "// why? see there\nco_await Sleep(ready ? a : b);\nif (ready ? a : b) co_return;\nco_await F();\n"),
         except_in=("tests/toolchain/*",)),
    Rule("no co_await in an initialiser list", "compilers destroyed its temporaries twice (docs/adr/0001-compiler.md)",
         check_await_in_initialiser,
         ("operator/a.cc", "co_return Answer{.value = co_await Read()};"),
         ("operator/a.cc", "auto f = [](int a) -> Task<void> { co_await G(a); };\nif (x) { co_await H(); }\n"
                           "Task<int> F() const { co_return co_await I({.a = 1}); }\n")),
    Rule("nobody is detached", "a coroutine is joined by the one who started it: TaskGroup, or one that counts",
         find(r"\bdetached\b", "spawn through host::TaskGroup"),
         ("operator/polling/a.cc", "co_spawn(ex, F(), boost::asio::detached);"),
         ("host/base/task_group.cc", "co_spawn(ex, F(), boost::asio::detached);"),
         under=tuple(PRODUCT),
         except_in=("host/base/task_group.cc", "operator/adapter/http_server.cc", "host/kit/*", "plugins/*",
                    "operator/kube/http_*", "operator/kube/curl_*", *MAINS)),
    Rule("the core has no event loop of its own", "the same core runs on one thread under a seeded executor",
         find(r"\b(io_context|steady_timer|system_timer|signal_set|thread_pool|ip::tcp|ip::udp|stream_protocol|stream_descriptor)\b",
              "take a host::Executor and a host::Clock"),
         ("operator/polling/a.cc", "boost::asio::steady_timer timer(executor);"),
         ("operator/adapter/a.cc", "boost::asio::ip::tcp::acceptor acceptor(executor);"),
         under=tuple(PRODUCT),
         except_in=("host/client/*", "host/kit/*", "plugins/*", "operator/kube/http_*", "operator/kube/curl_*",
                    "operator/adapter/*", "operator/webhook/*", "operator/local/*", "operator/ctl/*", *MAINS)),
    Rule("time is injected", "a FakeClock wakes whatever waits, and a run replays from its seed",
         find(r"\bRealClock\b|\babsl::Now\(|\b(system|steady|high_resolution)_clock\b|\bclock_gettime\b|\btime\((nullptr|NULL|0)\)",
              "ask the injected Clock"),
         ("operator/kube/a.cc", "const absl::Time now = absl::Now();"),
         ("operator/main.cc", "host::RealClock clock;"),
         under=tuple(PRODUCT),
         except_in=("host/base/real_clock.*", "host/base/logging.cc", *MAINS)),
    Rule("no sleeps", "wait for a condition with a deadline, or move the FakeClock",
         find(r"\bsleep_for\b|\bsleep_until\b|\b(u|nano)sleep\s*\(|::sleep\s*\(", "a thread that sleeps"),
         ("tests/a_test.cc", "std::this_thread::sleep_for(1s);"),
         ("tests/support/wait_for.cc", "std::this_thread::sleep_for(kStep);"),
         # What polls real processes, and a faulty process that hangs until it is told to end.
         except_in=("tests/support/wait_for.cc", "tests/host/client/faulty_scaler.cc")),
    Rule("no skipped tests", "a test that does not run shows nothing, and nobody sees that it did not",
         find(r"\bGTEST_SKIP\b|\bDISABLED_\w+", "make it run, or delete it"),
         ("tests/a_test.cc", "TEST(A, DISABLED_B) {}"), ("tests/a_test.cc", "TEST(A, B) {}  // not DISABLED_B\n"),
         under=("tests/*",)),
    Rule("no absl::Mutex", "Debian's Abseil hides it from the thread sanitizer",
         find(r"\babsl::(Mutex|MutexLock|ReaderMutexLock|CondVar|Notification)\b", "use host::Mutex"),
         ("host/client/a.h", "absl::Mutex mutex_;"), ("host/client/a.h", "// not absl::Mutex\nhost::Mutex mutex_;\n")),
    Rule("nothing throws", "errors are absl::Status; what a library throws is caught in its wrapper",
         find(r"\bthrow\b", "return a Status"),
         ("host/kit/a.cc", "throw std::runtime_error(text);"), ("host/kit/a.cc", '// may throw\nLog("throw");\n'),
         under=tuple(PRODUCT)),
    Rule("light headers", "Asio, gRPC, curl and OpenSSL stay out of headers, but for task.h", check_headers_stay_light,
         ("host/client/a.h", "#include <grpcpp/grpcpp.h>\n"),
         ("host/base/task.h", "#include <boost/asio/awaitable.hpp>\n"),
         files=("*.h",), under=tuple(PRODUCT), except_in=("host/base/task.h",)),
    Rule("few costly files", "each costs 20 to 40 s of every build", check_costly_files,
         ("", ""), ("", ""), whole_tree=True),
    Rule("pragma once", "a header is included once", check_pragma_once,
         ("host/base/a.h", "// #pragma once\n"), ("host/base/a.h", _HEAD + "#pragma once\n"), files=("*.h",)),
    Rule("SPDX", "every source file says its licence", check_spdx,
         ("host/base/a.cc", "#include <vector>\n"), ("tools/a.sh", "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n"),
         files=("*.cc", "*.h", "*.proto", "*.go", "*.js", "*.ts", "*.rs", "*.py", "*.sh", "*.cmake", "*CMakeLists.txt",
                "*Makefile")),
    Rule("NOLINT explains", "a suppression that nobody understands is never removed", check_nolint,
         ("host/base/a.cc", "x = (int)y;  // NOLINT\n"),
         ("host/base/a.cc", "x = (int)y;  // NOLINT(google-readability-casting): the C API wants it\n")),
    Rule("no machine's paths", "what runs here only is of no use elsewhere", check_machine_paths,
         ("tools/a.sh", "cd /ro" + "ot/outrigger\n"), ("tools/a.sh", 'cd "$HOME/ro' + 'ot"\nmount "$dir/root/x"\n'),
         files=("*",), except_in=("*.go.sum", "*go.sum", "*corpus/*")),
]

# ---- running --------------------------------------------------------------------------------------------------------


def read_sources(root: Path) -> list[Source]:
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            check=True, capture_output=True).stdout
    sources = []
    for name in sorted(set(listed.decode().split("\0")) - {""}):
        path = root / name
        if path.is_symlink() or not path.is_file():
            continue
        try:
            sources.append(Source(name, path.read_text(encoding="utf-8")))
        except UnicodeDecodeError:
            continue  # a corpus of bytes
    return sources


def violations_of(rule: Rule, sources: list[Source]) -> list[str]:
    seen = [source for source in sources if rule.applies(source.path)]
    if rule.whole_tree:
        found = rule.check(seen)
    else:
        found = [(source.path, line, message) for source in seen for line, message in rule.check(source)]
    return [f"{path}:{line}: {message} [{rule.name}: {rule.why}]" for path, line, message in found]


def lint(root: Path) -> int:
    sources = read_sources(root)
    found = sorted({text for rule in RULES for text in violations_of(rule, sources)})
    # Several rows share check_layers, each with its own reason: one line of the tree is reported once.
    shown = {}
    for text in found:
        shown.setdefault(text.split(" [")[0], text)
    for text in shown.values():
        print(text)
    print(f"{len(sources)} files, {len(RULES)} rules, {len(shown)} violations")
    return 1 if shown else 0


def self_test() -> int:
    failures = []
    for rule in RULES:
        if rule.whole_tree:
            files = [Source(f"host/kit/{i}.cc", "#include <grpcpp/grpcpp.h>\n") for i in range(MAX_COSTLY_FILES + 1)]
            cases = [(files, True), (files[1:], False)]
        else:
            cases = [([Source(*rule.planted)], True), ([Source(*rule.allowed)], False)]
        for sources, wanted in cases:
            found = violations_of(rule, sources)
            if bool(found) != wanted:
                failures.append(f'rule "{rule.name}": want {"a" if wanted else "no"} violation in {sources[0].path}, '
                                f"got {found}:\n{sources[0].text}")
    print("\n".join(failures) if failures else f"{len(RULES)} rules find what was planted and accept what is allowed")
    return 1 if failures else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        sys.exit(self_test())
    if len(sys.argv) != 2:
        sys.exit("usage: lint.py ROOT | --self-test")
    sys.exit(lint(Path(sys.argv[1])))
