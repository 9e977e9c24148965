#include "pip/tags.h"

#include "core/text.h"
#include "util/json.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

namespace containerize::pip {

namespace {

constexpr int oldest_abi3 = 2; ///< the first minor version with a stable ABI

// Also finds the musl that the interpreter runs with: its loader tells its version if it is run.
constexpr const char* show_facts = R"python(
import glob, json, os, platform, re, subprocess, sys, sysconfig
libc = ["", 0, 0]
try:
    text = os.confstr("CS_GNU_LIBC_VERSION") or ""
except (AttributeError, OSError, ValueError):
    text = ""
found = re.match(r"glibc (\d+)\.(\d+)", text)
if found:
    libc = ["glibc", int(found[1]), int(found[2])]
else:
    for loader in glob.glob("/lib/ld-musl-*.so.1"):
        text = subprocess.run([loader], stderr=subprocess.PIPE, universal_newlines=True).stderr
        found = re.search(r"Version (\d+)\.(\d+)", text)
        if found:
            libc = ["musl", int(found[1]), int(found[2])]
print(json.dumps({
    "implementation": sys.implementation.name,
    "minor": sys.version_info[1],
    "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    "debug": hasattr(sys, "gettotalrefcount"),
    "machine": platform.machine(),
    "libc": libc,
})))python";

/// The platforms of wheels, the best first.
std::vector<std::string> platforms_of(const InterpreterFacts& facts) {
    const auto& machine = facts.machine;
    std::vector<std::string> platforms;
    const auto [major, newest] = facts.libc_version;
    if (facts.libc == "glibc" && major == 2) {
        const int oldest = machine == "x86_64" || machine == "i686" ? 5 : 17;
        for (int minor = newest; minor >= oldest; --minor) {
            platforms.push_back(fmt::format("manylinux_2_{}_{}", minor, machine));
            for (const auto& [of, name] : {std::pair(17, "2014"), std::pair(12, "2010"), std::pair(5, "1")})
                if (minor == of) platforms.push_back(fmt::format("manylinux{}_{}", name, machine));
        }
    }
    if (facts.libc == "musl")
        for (int minor = newest; minor >= 0; --minor)
            platforms.push_back(fmt::format("musllinux_{}_{}_{}", major, minor, machine));
    platforms.push_back("linux_" + machine);
    return platforms;
}

/// The ABIs of the interpreter's own version, the best first.
std::vector<std::string> abis_of(const InterpreterFacts& facts, const std::string& version) {
    const std::string threads = facts.free_threaded ? "t" : "";
    std::vector<std::string> abis;
    if (facts.debug) abis.push_back(version + threads + "d");
    abis.push_back(version + threads);
    return abis;
}

/// The parts of "py2.py3-none-any" and so on.
struct WheelName {
    std::string_view build, pythons, abis, platforms;
};

std::optional<WheelName> parse_name(std::string_view file_name) {
    constexpr std::string_view extension = ".whl";
    if (!file_name.ends_with(extension)) return std::nullopt;
    file_name.remove_suffix(extension.size());
    const auto parts = split(file_name, '-');
    const auto count = parts.size();
    if (count != 5 && count != 6) return std::nullopt;
    return WheelName{.build = count == 6 ? parts[2] : std::string_view(),
                     .pythons = parts[count - 3],
                     .abis = parts[count - 2],
                     .platforms = parts[count - 1]};
}

/// "1local" -> {1, "local"}; any build is better than none.
std::pair<std::uint64_t, std::string> parse_build(std::string_view text) {
    const auto digits = std::min(text.find_first_not_of("0123456789"), text.size());
    return {to_number<std::uint64_t>(text.substr(0, digits)).value_or(0), std::string(text.substr(digits))};
}

} // namespace

Result<InterpreterFacts> ask_interpreter(Command python) {
    python.argv.insert(python.argv.end(), {"-I", "-c", show_facts});
    const auto answer = TRY(capture(python));
    const auto told = parse_json_quietly(answer.output);
    if (!answer.ok() || !told.is_object())
        return fail({.what = "the environment's Python does not tell which wheels it can use",
                     .why = "it printed\n" + tail(answer.errors, 6)});
    try {
        const auto& libc = told.at("libc");
        return InterpreterFacts{.implementation = text_of(told, "implementation"),
                                .minor = to_integer<int>(told.at("minor")),
                                .free_threaded = told.at("free_threaded") == true,
                                .debug = told.at("debug") == true,
                                .machine = text_of(told, "machine"),
                                .libc = libc.at(0).get<std::string>(),
                                .libc_version = {to_integer<int>(libc.at(1)), to_integer<int>(libc.at(2))}};
    } catch (const nlohmann::json::exception& problem) {
        return fail({.what = "the environment's Python does not tell which wheels it can use",
                     .why = reason(problem, answer.output)});
    }
}

std::vector<std::string> tags_of(const InterpreterFacts& facts) {
    const auto platforms = platforms_of(facts);
    std::vector<std::string> tags;
    const auto add = [&](const std::string& python, const std::string& abi) {
        for (const auto& platform : platforms)
            tags.push_back(python + "-" + abi + "-" + platform);
    };
    const auto version = fmt::format("cp3{}", facts.minor);
    for (const auto& abi : abis_of(facts, version))
        add(version, abi);
    if (!facts.free_threaded) add(version, "abi3");
    add(version, "none");
    if (!facts.free_threaded)
        for (int minor = facts.minor - 1; minor >= oldest_abi3; --minor)
            add(fmt::format("cp3{}", minor), "abi3");
    std::vector<std::string> pure = {fmt::format("py3{}", facts.minor), "py3"};
    for (int minor = facts.minor - 1; minor >= 0; --minor)
        pure.push_back(fmt::format("py3{}", minor));
    for (const auto& python : pure)
        add(python, "none");
    tags.push_back(version + "-none-any");
    for (const auto& python : pure)
        tags.push_back(python + "-none-any");
    return tags;
}

TagOrder::TagOrder(const std::vector<std::string>& tags) {
    for (const auto& tag : tags)
        places_.emplace(tag, static_cast<std::ptrdiff_t>(places_.size()));
}

std::optional<WheelRank> TagOrder::rank(std::string_view file_name) const {
    const auto name = parse_name(file_name);
    if (!name) return std::nullopt;
    std::optional<WheelRank> best;
    for (const auto python : split(name->pythons, '.'))
        for (const auto abi : split(name->abis, '.'))
            for (const auto platform : split(name->platforms, '.')) {
                const auto found = places_.find(fmt::format("{}-{}-{}", python, abi, platform));
                if (found == places_.end()) continue;
                const WheelRank rank{.tag = -found->second, .build = parse_build(name->build)};
                if (!best || rank > *best) best = rank;
            }
    return best;
}

} // namespace containerize::pip
