#include "core/variables.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace containerize {

namespace {

namespace fs = std::filesystem;

const fs::path source = CONTAINERIZE_SOURCE_DIR;

bool is_documented(const std::string& name) {
    for (const auto& row : variable_table) {
        std::istringstream names{std::string(row.names)};
        for (std::string one; names >> one;)
            if (one == name || (one.ends_with('*') && name.starts_with(one.substr(0, one.size() - 1))))
                return true;
    }
    return false;
}

/// All words of the files in `directory` that begin with `start`.
std::set<std::string> words_in(const fs::path& directory, const std::string& start) {
    std::set<std::string> words;
    for (const auto& entry : fs::recursive_directory_iterator(source / directory)) {
        if (!entry.is_regular_file() || entry.path().filename() == "CMakeLists.txt") continue;
        std::ostringstream text;
        text << std::ifstream(entry.path()).rdbuf();
        const auto all = text.str();
        for (auto at = all.find(start); at != std::string::npos; at = all.find(start, at + 1)) {
            const auto end = all.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", at);
            words.insert(all.substr(at, end - at));
        }
    }
    return words;
}

TEST(Variables, AllAreDocumented) {
    const std::set<std::string> no_variables = {"CONTAINERIZE_VERSION", "CONTAINERIZE_BUILD",
                                                "CONTAINERIZE_TESTS", "CONTAINERIZE_", "CW_"};
    for (const char* directory : {"src", "wrappers", "templates", "docs", "examples"})
        for (const char* start : {"CONTAINERIZE_", "TYKKY_", "CW_"})
            for (const auto& name : words_in(directory, start))
                EXPECT_TRUE(is_documented(name) || no_variables.contains(name) ||
                            name.starts_with("CONTAINERIZE_TEST_"))
                    << name << " in " << directory << " is not in core/variable_table.h";
}

/// Otherwise the compiler could not check the name.
TEST(Variables, AreReadByNameInOnePlace) {
    const std::set<fs::path> with_names_of_users = {"environment_yaml.cpp", "requirements.cpp"};
    for (const char* directory : {"src", "wrappers"})
        for (const auto& entry : fs::recursive_directory_iterator(source / directory)) {
            const auto name = entry.path().filename();
            if (!entry.is_regular_file() || name == "variables.h" || name == "variables.cpp" ||
                with_names_of_users.contains(name))
                continue;
            std::ifstream file(entry.path());
            for (std::string line; std::getline(file, line);)
                EXPECT_FALSE(line.contains("getenv(")) << entry.path() << ": " << line;
        }
}

} // namespace

} // namespace containerize
