#include "good.h"
#include "launch/control_message.h"

#include <climits>

#include <gtest/gtest.h>

namespace containerize::launch {
namespace {

using namespace std::string_literals;

TEST(ControlMessage, IsReadAsItWasWritten) {
    for (const auto verb : {ControlVerb::mount, ControlVerb::statistics}) {
        const auto request = test::good(parse_request(to_message({.verb = verb, .prefix = "/opt/a b"})));
        EXPECT_EQ(request.verb, verb);
        EXPECT_EQ(request.prefix, "/opt/a b");
    }
    EXPECT_EQ(to_message({.verb = ControlVerb::mount, .prefix = "/x"}), "mount\0/x"s)
        << "as older launchers say it";
}

TEST(ControlMessage, WhatIsNoRequestIsNone) {
    for (const auto& message : {""s, "mount"s, "mount\0"s, "\0/x"s, "mounted\0/x"s, "mount\0x"s,
                                "mount\0/x\0"s, "mount\0/"s + std::string(PATH_MAX, 'x')})
        EXPECT_FALSE(parse_request(message)) << message;
}

} // namespace
} // namespace containerize::launch
