#include "../good.h"
#include "../temporary.h"
#include "conda/conflict.h"
#include "conda/solver.h"
#include "core/filesystem.h"
#include "core/mapped_file.h"
#include "real_lists.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace containerize::conda {
namespace {

using test::TemporaryDirectory;

/// Channels that a test writes itself, added in order of priority.
class Channels {
public:
    /// `records`: each is "name version build number | depends, separated by ;".
    void add(const std::string& name, const std::vector<std::string>& records) {
        nlohmann::json packages = nlohmann::json::object();
        for (const auto& line : records) {
            const auto bar = line.find('|');
            std::istringstream head(line.substr(0, bar));
            nlohmann::json entry = {{"depends", nlohmann::json::array()}, {"build_number", 0}};
            std::string package, version, build;
            std::uint64_t number = 0;
            head >> package >> version >> build >> number;
            entry["name"] = package;
            entry["version"] = version;
            entry["build"] = build;
            entry["build_number"] = number;
            std::istringstream tail(bar == std::string::npos ? "" : line.substr(bar + 1));
            for (std::string one; std::getline(tail, one, ';');) {
                const auto start = one.find_first_not_of(' ');
                if (start == std::string::npos) continue;
                one = one.substr(start, one.find_last_not_of(' ') - start + 1);
                if (one.starts_with("constrains "))
                    entry["constrains"].push_back(one.substr(11));
                else if (one.starts_with("built "))
                    entry["timestamp"] = std::stoll(one.substr(6));
                else if (one.starts_with("published "))
                    entry["indexed_timestamp"] = std::stoll(one.substr(10));
                else if (one.starts_with("features "))
                    entry["track_features"] = one.substr(9);
                else
                    entry["depends"].push_back(one);
            }
            packages[package + "-" + version + "-" + build + ".conda"] = entry;
        }
        const nlohmann::json data = {{"info", {{"subdir", "linux-64"}}},
                                     {"packages", nlohmann::json::object()},
                                     {"packages.conda", packages}};
        const auto file = directory_.write(name + ".json", data.dump());
        Repodata list;
        list.channel = {.name = name, .url = "https://example.org/" + name, .mirrors = {}};
        list.subdir = "linux-64";
        list.priority = 100 - static_cast<int>(lists_.size());
        list.json = OpenFile::open(file).value();
        list.identity = name;
        list.cache = cached ? directory_.path() : fs::path();
        lists_.push_back(std::move(list));
    }

    Result<std::vector<PackageRecord>> solve(const std::vector<std::string>& specs,
                                             ChannelPriority priority = ChannelPriority::flexible) const {
        SolveRequest request;
        request.priority = priority;
        request.pip_with_python = pip_with_python;
        int line = 0;
        for (const auto& text : specs) {
            auto spec = parse_match_spec(text);
            EXPECT_TRUE(spec) << text;
            std::vector<std::string> named;
            std::istringstream channels(spec->channel); // "a/b" is a name that stands for several channels
            for (std::string one; std::getline(channels, one, '/');)
                named.push_back("https://example.org/" + one);
            request.wanted.push_back({.spec = std::move(*spec),
                                      .channels = std::move(named),
                                      .where = "env.yml:" + std::to_string(++line)});
        }
        for (const auto& text : pins)
            request.pins.push_back({.spec = *parse_match_spec(text), .channels = {}, .where = "condarc:3"});
        auto pool =
            TRY(PackagePool::load(lists_, names_in(request), machine, {.exclude_newer = exclude_newer}));
        left_out = pool.left_out();
        auto solution = TRY(conda::solve(pool, std::move(request)));
        return std::move(solution.install);
    }

    /// The solution as sorted "name-version-build"; or the error message.
    std::string solved(const std::vector<std::string>& specs,
                       ChannelPriority priority = ChannelPriority::flexible) const {
        const auto records = solve(specs, priority);
        if (!records) return to_string(records.error());
        std::vector<std::string> names;
        for (const auto& record : *records)
            names.push_back(record.distribution());
        std::ranges::sort(names);
        std::string text;
        for (const auto& name : names)
            text += (text.empty() ? "" : " ") + name;
        return text;
    }

    std::vector<VirtualPackage> machine = {{"__glibc", "2.36", "0"}, {"__archspec", "1", "x86_64_v3"}};
    std::vector<std::string> pins;
    bool pip_with_python = true;
    bool cached = false;
    std::optional<Cutoff> exclude_newer;
    mutable std::size_t left_out = 0; ///< by exclude_newer, in the last solve()
    [[nodiscard]] const fs::path& directory() const { return directory_.path(); }

private:
    TemporaryDirectory directory_;
    std::vector<Repodata> lists_;
};

TEST(Solver, TakesTheNewestThatFitsAndWhatItNeeds) {
    Channels channels;
    channels.add("main", {"app 1.0 0 0 | lib >=1,<2", "app 2.0 0 0 | lib >=2,<3", "app 3.0 0 0 | lib >=4",
                          "lib 1.5 0 0", "lib 2.5 0 0", "lib 2.5 1 1", "lib 3.0 0 0"});
    EXPECT_EQ(channels.solved({"app"}), "app-2.0-0 lib-2.5-1");
    EXPECT_EQ(channels.solved({"app", "lib<2"}), "app-1.0-0 lib-1.5-0");
    EXPECT_EQ(channels.solved({"lib=2.5=0"}), "lib-2.5-0");
    const auto order = test::good(channels.solve({"app"}));
    EXPECT_EQ(order.front().name, "lib") << "dependencies come first";
    EXPECT_EQ(order.front().url, "https://example.org/main/linux-64/lib-2.5-1.conda");
}

TEST(Solver, NewerPackagesAreLeftOut) {
    Channels channels;
    // In seconds, in milliseconds, and as the channel and as the builder tell it.
    channels.add("main",
                 {"app 1.0 0 0 | built 1000", "app 2.0 0 0 | built 1999999999999",
                  "app 3.0 0 0 | built 2000000000", "app 4.0 0 0 | built 1000; published 2000000000001",
                  "app 5.0 0 0", "app 6.0 0 0 | built 0", "other 1.0 0 0 | built 3000000000",
                  "other 0.5 0 0 | built 3000000000; published 1000"});
    EXPECT_EQ(channels.solved({"app"}), "app-6.0-0");
    channels.exclude_newer = Cutoff{2'000'000'000};
    EXPECT_EQ(channels.solved({"app"}), "app-2.0-0");
    EXPECT_EQ(channels.left_out, 4U);
    EXPECT_EQ(channels.solved({"other"}), "other-0.5-0");
    EXPECT_NE(channels.solved({"app>2"}).find("app"), std::string::npos);
    channels.exclude_newer = Cutoff{0};
    EXPECT_NE(channels.solved({"app"}), "app-1.0-0");
    EXPECT_EQ(channels.left_out, 6U);
}

TEST(Solver, PackagesWithConditionsAreLeftOut) {
    Channels channels;
    channels.add("main",
                 {"app 1.0 0 0 | lib", "app 2.0 0 0 | lib[when=\"python >=3\"]",
                  "app 3.0 0 0 | lib[extras=[a]]", "app 4.0 0 0 | lib[flags=\"gpu:*\"]", "lib 1.0 0 0"});
    EXPECT_EQ(channels.solved({"app"}), "app-1.0-0 lib-1.0-0");
    EXPECT_EQ(channels.solved({"lib"}), "lib-1.0-0");
}

TEST(Solver, PythonBringsPip) {
    Channels channels;
    channels.add("main", {"python 3.11.1 0 0", "python 3.12.0 0 0", "pip 24.0 py 0 | python >=3.8"});
    EXPECT_EQ(channels.solved({"python=3.11"}), "pip-24.0-py python-3.11.1-0");
}

TEST(Solver, PrioritiesOfChannels) {
    Channels channels;
    channels.add("first", {"a 1.0 0 0", "b 1.0 0 0 | a >=2"});
    channels.add("second", {"a 2.0 0 0", "c 1.0 0 0"});
    EXPECT_EQ(channels.solved({"a"}), "a-1.0-0") << "a better channel wins over a newer version";
    EXPECT_EQ(channels.solved({"a"}, ChannelPriority::disabled), "a-2.0-0");
    EXPECT_EQ(channels.solved({"a>=2"}), "a-2.0-0");
    EXPECT_EQ(channels.solved({"a", "c"}, ChannelPriority::strict), "a-1.0-0 c-1.0-0");
    EXPECT_EQ(channels.solved({"second::a"}, ChannelPriority::strict), "a-2.0-0");
    EXPECT_EQ(channels.solved({"first/second::c", "first/second::a>=2"}, ChannelPriority::strict),
              "a-2.0-0 c-1.0-0")
        << "any member of a multichannel will do";
    EXPECT_EQ(channels.solved({"first::c"}),
              "env.yml:1: no channel has first::c: the channel https://example.org/first has no package of "
              "that name, but other channels do");
    EXPECT_EQ(channels.solved({"a>=2"}, ChannelPriority::strict),
              "env.yml:1: no channel has a>=2: only a channel of lower priority has it, and strict channel "
              "priority forbids using that one\nName the channel (CHANNEL::a), or set channel_priority to "
              "flexible.");
    EXPECT_EQ(channels.solved({"b"}), "a-2.0-0 b-1.0-0");
}

TEST(Solver, VirtualPackagesFeaturesConstraintsAndPins) {
    Channels channels;
    channels.add("main",
                 {"torch 2.0 cuda 1 | __cuda >=12", "torch 2.0 cpu 0", "mkl 1.0 slow 0 | features blas",
                  "mkl 1.0 fast 0", "a 1.0 0 0 | constrains b <2", "b 1.0 0 0", "b 2.0 0 0",
                  "old 1.0 0 0 | __glibc >=2.17", "new 1.0 0 0 | __glibc >=3"});
    EXPECT_EQ(channels.solved({"torch"}), "torch-2.0-cpu");
    EXPECT_EQ(channels.solved({"mkl"}), "mkl-1.0-fast");
    EXPECT_EQ(channels.solved({"a", "b"}), "a-1.0-0 b-1.0-0");
    EXPECT_EQ(channels.solved({"b"}), "b-2.0-0");
    EXPECT_EQ(channels.solved({"old"}), "old-1.0-0");
    EXPECT_TRUE(
        channels.solved({"new"}).contains("new 1.0 needs __glibc >=3, which the machine does not have"))
        << channels.solved({"new"});
    EXPECT_TRUE(channels.solved({"torch=2.0=cuda"}).contains("--cuda 12.4"))
        << channels.solved({"torch=2.0=cuda"});
    channels.machine.push_back({"__cuda", "12.4", "0"});
    EXPECT_EQ(channels.solved({"torch"}), "torch-2.0-cuda");
    channels.pins = {"b 1.*"};
    EXPECT_EQ(channels.solved({"b"}), "b-1.0-0");
    EXPECT_EQ(channels.solved({"old"}), "old-1.0-0") << "a pin asks for nothing";
    EXPECT_TRUE(channels.solved({"b=2"}).contains(
        "- the pin on b (condarc:3) permits only b 1.*, but b=2 was requested"))
        << channels.solved({"b=2"});
}

TEST(Solver, AConflictIsExplained) {
    Channels channels;
    channels.add("main", {"torchvision 0.15.1 0 0 | pytorch 2.0.*", "torchvision 0.15.2 0 0 | pytorch 2.0.*",
                          "pytorch 1.13.1 0 0 | python >=3.7,<3.12", "pytorch 2.0.1 0 0 | python >=3.8",
                          "python 3.11.0 0 0", "pip 24 0 0"});
    EXPECT_EQ(channels.solved({"pytorch=1.13", "torchvision=0.15"}),
              "these requirements conflict:\n  pytorch=1.13  (env.yml:1)\n  torchvision=0.15  (env.yml:2)\n  "
              "  - torchvision 0.15.1, 0.15.2 needs pytorch 2.0.*, but pytorch=1.13 was requested\nRequest "
              "other versions, or remove requirements that you do not need.");
}

TEST(Solver, ANameThatNobodyHasIsGuessed) {
    Channels channels;
    channels.add("main", {"numpy 1.26.4 0 0", "numpy 1.25.0 0 0", "scipy 1.11 0 0", "pytorch 2.0 0 0"});
    EXPECT_EQ(channels.solved({"nunpy"}),
              "env.yml:1: no channel has nunpy: there is no package of that name\nDid you mean numpy?");
    EXPECT_EQ(channels.solved({"torch"}),
              "env.yml:1: no channel has torch: there is no package of that name\nDid you mean pytorch?");
    EXPECT_EQ(channels.solved({"numpy>=2"}),
              "env.yml:1: no channel has numpy>=2: the available versions of numpy are 1.26.4, 1.25.0");
    EXPECT_TRUE(channels.solved({"zzzzqqqq"}).contains("list it under `pip:`"));
}

TEST(Solver, TheKeptIndexGivesTheSameAndIsReplacedWhereItIsDamaged) {
    Channels channels;
    channels.cached = true;
    channels.add("main", {"a 1.0 0 0 | b >=1", "b 1.0 0 0", "b 2.0 0 0 | features x"});
    const auto first = channels.solved({"a"});
    EXPECT_EQ(first, "a-1.0-0 b-1.0-0");
    const auto cached = channels.directory() / "main.containerize-index-2";
    ASSERT_TRUE(fs::exists(cached));
    EXPECT_EQ(channels.solved({"a"}), first);
    const auto whole = fs::file_size(cached);
    fs::resize_file(cached, whole / 2);
    EXPECT_EQ(channels.solved({"a"}), first);
    EXPECT_EQ(fs::file_size(cached), whole);
}

TEST(Solver, ARecordThatIsLeftOutTakesNothingFromTheNext) {
    Channels channels;
    channels.add("main",
                 {"torch 2.0 cpu_0 0 | mkl[version='>=']", "torch 2.0 cuda_0 0",
                  "x 1 0 0 | constrains z <1; -odd", "x 2 0 0 | constrains q <5", "q 1 0 0", "q 9 0 0"});
    EXPECT_EQ(channels.solved({"torch=2.0=cuda*"}), "torch-2.0-cuda_0");
    EXPECT_EQ(channels.solved({"x", "q"}), "q-1-0 x-2-0");
}

TEST(Solver, ANameOfWhichNoRecordIsOfUseIsSaidToBeThere) {
    Channels channels;
    channels.add("main", {"torch 2.0 0 0 | mkl[version='>=']"});
    EXPECT_TRUE(channels.solved({"torch"}).contains("none of its records is valid"));
}

// A request and a dependency with the same text have the same meaning.
TEST(Solver, DependenciesAreJudgedAsRequestsAre) {
    Channels channels;
    channels.add("main", {"n 1.25 0 0", "n 1.26.3 0 0", "n 1.26.4 0 0", "n 1.26.4+cu118 0 0",
                          "n 1.26.5+cpu 0 0", "below 1 0 0 | n <1.26.*", "least 1 0 0 | n >=1.26.4,<1.26.4.9",
                          "exact 1 0 0 | n 1.26.4", "family 1 0 0 | n 1.26.*", "local 1 0 0 | n 1.26.4+cu118",
                          "old 1 0 0 | n <1.26.4,>=1.26.4.*", "local-only 1 0 0 | n >1.26.3,<1.26.4",
                          "ruled 1 0 0 | n <1.25|>=1.26.5"});
    const auto chosen = [&](const std::string& package, const std::string& spec) {
        const auto by_dependency = channels.solved({package});
        const auto by_request = channels.solved({spec});
        EXPECT_EQ(by_dependency.substr(by_dependency.find(" n-") + 1), by_request) << spec;
        return by_request;
    };
    EXPECT_EQ(chosen("below", "n <1.26.*"), "n-1.25-0");
    EXPECT_EQ(chosen("least", "n >=1.26.4,<1.26.4.9"), "n-1.26.4-0");
    EXPECT_EQ(chosen("exact", "n 1.26.4"), "n-1.26.4-0");
    EXPECT_EQ(chosen("family", "n 1.26.*"), "n-1.26.5+cpu-0");
    EXPECT_EQ(chosen("local", "n 1.26.4+cu118"), "n-1.26.4+cu118-0");
    EXPECT_EQ(chosen("local-only", "n >1.26.3,<1.26.4"), "n-1.26.4+cu118-0");
    EXPECT_TRUE(channels.solved({"ruled"}).contains("ruled 1 needs n <1.25|>=1.26.5, which no channel has"))
        << channels.solved({"ruled"});
    // This includes comparisons that libsolv makes itself, such as for the newest of several.
    EXPECT_EQ(channels.solved({"n 1.26.4.*"}), "n-1.26.4-0");
}

TEST(Solver, KeysInBracketsOfDependenciesCount) {
    Channels channels;
    channels.add("main", {"b 1 0 0", "b 1 1 1", "b 1 2 2", "a 1 0 0 | b[build_number='<2']",
                          "c 1 0 0 | b[build=0]", "d 1 0 0 | b[license=MIT]"});
    EXPECT_EQ(channels.solved({"a"}), "a-1-0 b-1-1");
    EXPECT_EQ(channels.solved({"c"}), "b-1-0 c-1-0");
    EXPECT_TRUE(channels.solved({"d"}).contains("d 1 needs b[license=MIT], which no channel has"))
        << channels.solved({"d"});
    channels.pins = {"b[build_number=0]"};
    EXPECT_EQ(channels.solved({"b"}), "b-1-0");
}

TEST(Solver, WithPythonComesPip) {
    Channels channels;
    channels.add("main", {"python 3.11.0 0 0", "pip 24 0 0"});
    EXPECT_EQ(channels.solved({"python"}), "pip-24-0 python-3.11.0-0");
    channels.pip_with_python = false;
    EXPECT_EQ(channels.solved({"python"}), "python-3.11.0-0");
}

TEST(Solver, DependenciesInOddForms) {
    Channels channels;
    const std::string deep(5000, '(');
    channels.add("main",
                 {"a 1 0 0 | ns:b >=1", "b 2 0 0", "c 1 0 0 | ^B.$", "bx 1 0 0", "d 1 0 0 | b " + deep,
                  "d 0 0 0", "e 1 0 0 | b \x1b[31m", "e 0 0 0", "f 1 0 0 | k[0-9]* >=1", "k1 1 0 0",
                  "g 1 0 0 | b * ^((x{1,30000}){1,30000}){1,30000}$", "g 0 0 0", "h 1 0 0 | __"});
    EXPECT_EQ(channels.solved({"a"}), "a-1-0 b-2-0");
    EXPECT_EQ(channels.solved({"c"}), "bx-1-0 c-1-0");
    EXPECT_EQ(channels.solved({"f"}), "f-1-0 k1-1-0");
    EXPECT_EQ(channels.solved({"d"}), "d-0-0") << "one that would take the solver too deep";
    EXPECT_EQ(channels.solved({"e"}), "e-0-0") << "one that would write to the terminal";
    EXPECT_EQ(channels.solved({"g"}), "g-0-0") << "one that would take all memory";
    EXPECT_TRUE(channels.solved({"h"}).contains("h 1 needs __, which the machine does not have"));
}

TEST(Solver, ADamagedListIsNamed) {
    const TemporaryDirectory directory;
    Repodata list;
    list.channel = {.name = "broken", .url = "https://example.org/broken", .mirrors = {}};
    list.subdir = "noarch";
    for (const char* text :
         {"{\"packages\": {\"a-1-0.conda\": {\"name\": \"a\"", "[]", "not json", "{\"packages\": 3}"}) {
        list.json = OpenFile::open(directory.write("repodata.json", text)).value();
        const auto pool = PackagePool::load({list}, {"*"}, {});
        ASSERT_FALSE(pool) << text;
        EXPECT_TRUE(to_string(pool.error()).starts_with("broken/noarch: a channel's package list is damaged"))
            << to_string(pool.error());
    }
}

TEST(SolverRealData, EveryListIsReadAndItsPackagesAreRecords) {
    const TemporaryDirectory cache;
    std::size_t records = 0;
    for (const auto& list : real_lists("", cache.path())) {
        const auto pool = PackagePool::load({list}, {"*"}, {});
        ASSERT_TRUE(pool) << list.json.path << to_string(pool.error());
        for (const Id id : pool->matching(*parse_match_spec("*"), {})) {
            const auto record = pool->record(id);
            ASSERT_TRUE(record) << list.json.path << to_string(record.error());
            EXPECT_FALSE(record->file_name.empty());
            ++records;
        }
    }
    EXPECT_GT(records, 12'000U);
}

TEST(SolverRealData, AnEnvironmentOfCondaForgeIsSolved) {
    const TemporaryDirectory cache;
    const auto lists = real_lists("repodata/conda-forge-from-locks", cache.path());
    SolveRequest request;
    for (const char* text : {"python=3.12", "numpy"})
        request.wanted.push_back({.spec = *parse_match_spec(text), .channels = {}});
    auto pool = test::good(PackagePool::load(lists, names_in(request),
                                             {{"__glibc", "2.36", "0"},
                                              {"__linux", "6.1", "0"},
                                              {"__unix", "0", "0"},
                                              {"__archspec", "1", "x86_64_v3"}}));
    const auto solution = test::good(solve(pool, std::move(request)));
    const auto& records = solution.install;
    EXPECT_GT(records.size(), 20U);
    for (const auto& record : records)
        for (const auto& text : record.depends) {
            const auto spec = test::good(parse_match_spec(text));
            if (spec.name.starts_with("__")) continue;
            EXPECT_TRUE(std::ranges::any_of(records, [&](const auto& other) { return spec.matches(other); }))
                << record.name << " needs " << text;
        }
}

} // namespace
} // namespace containerize::conda
