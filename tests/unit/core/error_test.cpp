#include "core/error.h"

#include <string>

#include <gtest/gtest.h>

namespace containerize {

TEST(Error, IsPrintedInTheAgreedOrder) {
    EXPECT_EQ(to_string(Error{.what = "cannot X"}), "cannot X");
    EXPECT_EQ(to_string(Error{.what = "cannot X", .why = "no Y", .where = "file:3", .hint = "Do Z."}),
              "file:3: cannot X: no Y\nDo Z.");
}

TEST(Error, WhatOthersWroteCannotReprogramATerminal) {
    EXPECT_EQ(to_string(Error{.what = "not a name: '\x1b]0;x\a'",
                              .why = "a\r\x7f\tb\nc \xC2\x9B"
                                     "2J \xC3\xBC\xC2\xB5",
                              .where = std::string("f\0", 2),
                              .hint = "\b"}),
              "f?: not a name: '?]0;x?': a??\tb\nc ?2J \xC3\xBC\xC2\xB5\n?");
}

TEST(Error, LongLinesAreShortened) {
    const auto words = [](std::size_t count) {
        std::string text;
        for (std::size_t i = 0; i < count; ++i)
            text += "word ";
        return text;
    };
    EXPECT_EQ(to_string(Error{.what = words(1000), .hint = "Do Z."}), words(1000) + "\nDo Z.");
    EXPECT_EQ(to_string(Error{.what = words(1000) + "https://me:secret@host", .hint = "Do Z."}),
              words(1000) + "...\nDo Z.");
    EXPECT_EQ(to_string(Error{.what = "no name: '" + std::string(1'000'000, 'x'), .hint = "Do Z."}),
              "no name: '...\nDo Z.");
    EXPECT_EQ(to_string(Error{.what = std::string(1'000'000, 'x')}), "...");
}

TEST(Error, ErrnoAndInput) {
    const Status errno_failure = fail_errno("cannot read", "/a", ENOENT);
    EXPECT_EQ(to_string(errno_failure.error()), "/a: cannot read: No such file or directory");
    EXPECT_EQ(errno_failure.error().fault, Fault::failure);
    const Status input = fail_input("bad value", "too small", "--jobs", "Give at least 1.");
    EXPECT_EQ(to_string(input.error()), "--jobs: bad value: too small\nGive at least 1.");
    EXPECT_EQ(input.error().fault, Fault::input);
}

} // namespace containerize
