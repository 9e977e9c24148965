// Lock files of all kinds: pixi's, conda-lock's, explicit lists, and ours.
#include "harness.h"
#include "input_file.h"
#include "spec/conda_environment.h"

using namespace containerize;
using spec::SpecKind;

namespace {

spec::LockChoice choice_for(SpecKind kind) {
    spec::LockChoice choice{.subdir = "linux-64"};
    if (kind == SpecKind::conda_lock) choice.categories = {"dev"};
    choice.machine = [] {
        return Result<std::vector<conda::VirtualPackage>>(
            {{.name = "__glibc", .version = "2.36", .build = "0"},
             {.name = "__archspec", .version = "1", .build = "x86_64_v3"}});
    };
    return choice;
}

/// These strings become parts of URLs, of paths and of lines in files.
void check(const spec::LockedEnvironment& locked) {
    for (const auto& package : locked.packages) {
        fuzz::require(package.file_name.find('/') == std::string::npos);
        fuzz::require(package.url.find('\n') == std::string::npos);
    }
    for (const auto& line : locked.pip)
        fuzz::require(line.text.find('\n') == std::string::npos);
}

} // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto text = fuzz::text_of(data, size);
    const auto kind = spec::recognise(text, "lock");
    if (!std::holds_alternative<spec::LockReader>(spec::format_of(kind).reader)) return 0;
    const auto locked = spec::read_locked(fuzz::input_file("lock", text), kind, choice_for(kind));
    if (!fuzz::good_input(locked)) return 0;
    check(*locked);
    const auto own = spec::lock_text(*locked, "linux-64");
    const auto again =
        spec::read_locked(fuzz::input_file("own", own), SpecKind::lock, choice_for(SpecKind::lock));
    if (fuzz::good_input(again)) fuzz::require(spec::lock_text(*again, "linux-64") == own);
    return 0;
}
