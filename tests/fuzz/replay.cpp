// Replaces a fuzzer: gives a harness the inputs in the files and directories that are named.
#include "harness.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <span>
#include <vector>

namespace fs = std::filesystem;

namespace {

std::vector<fs::path> inputs(std::span<char*> arguments) {
    std::vector<fs::path> files;
    for (const fs::path argument : arguments) {
        if (!fs::is_directory(argument)) {
            files.push_back(argument);
            continue;
        }
        for (const auto& entry : fs::recursive_directory_iterator(argument))
            if (entry.is_regular_file()) files.push_back(entry.path());
    }
    std::ranges::sort(files);
    return files;
}

} // namespace

int main(int count, char** arguments) {
    const auto files = inputs(std::span(arguments, static_cast<std::size_t>(count)).subspan(1));
    for (const auto& path : files) {
        std::cout << path.string() << std::endl; // first, so that the last line names the culprit
        std::ifstream file(path, std::ios::binary);
        const std::vector<char> bytes((std::istreambuf_iterator<char>(file)),
                                      std::istreambuf_iterator<char>());
        if (!file.good() && !file.eof()) return 1;
        LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    }
    return files.empty() ? 1 : 0; // a corpus that is missing must not look like one that passes
}
