// Random trees, random changes to them, and listings of trees.
#pragma once

#include "core/filesystem.h"
#include "image/writer.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

namespace containerize::test {

/// Maps every path to its type, mode, time, and content or target.
inline std::map<std::string, std::string> listing_of(const fs::path& root) {
    std::map<std::string, std::string> listing;
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
        struct stat info {};
        EXPECT_EQ(lstat(entry.path().c_str(), &info), 0) << entry.path();
        std::string& text = listing[entry.path().lexically_relative(root)];
        // Images change modes for sharing.
        text = std::to_string(image::mode_for_sharing(info.st_mode, 022) | (info.st_mode & S_IFMT));
        if (S_ISLNK(info.st_mode)) text = "link to " + fs::read_symlink(entry.path()).string();
        if (S_ISREG(info.st_mode))
            text += " " + std::to_string(info.st_mtime) + " " + std::to_string(info.st_nlink) + " " +
                    read_file(entry.path()).value_or("unreadable");
    }
    return listing;
}

/// Sets the time explicitly: fuse-overlayfs shows a slightly different time for a write than it stores.
inline void write(std::mt19937& random, const fs::path& path, std::string_view text,
                  std::ios::openmode mode = std::ios::trunc) {
    std::ofstream(path, std::ios::out | mode) << text;
    const timespec time{.tv_sec = 1'700'000'000 + static_cast<time_t>(random() % 10'000'000), .tv_nsec = 0};
    const timespec times[] = {time, time};
    EXPECT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0) << path;
}

inline void fill(std::mt19937& random, const fs::path& directory, int depth) {
    fs::create_directories(directory);
    for (unsigned i = 0; i < 6; ++i) {
        const auto path = directory / ("f" + std::to_string(i));
        switch (random() % 4) {
        case 0:
            write(random, path, std::string(random() % 300'000, static_cast<char>('a' + random() % 3)));
            break;
        case 1:
            write(random, path, "small " + std::to_string(random()));
            fs::create_hard_link(path, directory / ("h" + std::to_string(i)));
            break;
        case 2:
            fs::create_symlink("f" + std::to_string(random() % 6), path);
            break;
        default:
            if (depth > 0) fill(random, path, depth - 1);
        }
    }
}

// Removes, replaces, renames and adds, which makes whiteouts, opaque directories and copied-up files.
inline void change(std::mt19937& random, const fs::path& root) {
    std::vector<fs::path> paths;
    for (const auto& entry : fs::recursive_directory_iterator(root))
        paths.push_back(entry.path());
    std::ranges::shuffle(paths, random);
    for (const auto& path : paths) {
        std::error_code gone;
        const auto status = fs::symlink_status(path, gone);
        if (!fs::exists(status)) continue;
        switch (random() % 8) {
        case 0:
            fs::remove_all(path);
            break;
        case 1: // a file replaces a directory, or a directory replaces anything
            fs::remove_all(path);
            if (random() % 2 == 0)
                fill(random, path, 1);
            else
                write(random, path, "new " + std::to_string(random()));
            break;
        case 2:
            if (fs::is_regular_file(status)) write(random, path, "more", std::ios::app);
            break;
        case 3:
            fs::rename(path, path.parent_path() / ("moved" + path.filename().string()), gone);
            break; // overlays refuse to rename directories of lower layers
        case 4:
            if (fs::is_regular_file(status))
                fs::create_hard_link(path, path.parent_path() / ("again" + path.filename().string()), gone);
            break;
        default:
            break;
        }
    }
    write(random, root / ("added" + std::to_string(random())), std::to_string(random()));
}

/// Images keep hard links, while overlayfs shows some as separate files.
inline std::map<std::string, std::string> without_links(std::map<std::string, std::string> listing) {
    for (auto& [path, text] : listing)
        if (const auto time = text.find(' '); time != std::string::npos && !text.starts_with("link"))
            text.erase(text.find(' ', time + 1),
                       text.find(' ', text.find(' ', time + 1) + 1) - text.find(' ', time + 1));
    return listing;
}

} // namespace containerize::test
