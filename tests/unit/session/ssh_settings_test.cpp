#include "session/ssh_settings.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace containerize::session {
namespace {

using Words = std::vector<std::string>;

TEST(SshSettings, IncludesAreFoundHoweverTheyAreWritten) {
    EXPECT_EQ(ssh_includes("Host *\n  Include /etc/ssh/ssh_config.d/*.conf\n"),
              Words{"/etc/ssh/ssh_config.d/*.conf"});
    EXPECT_EQ(ssh_includes("include = one  \"two words\"\tthree\r\nINCLUDE\tfour"),
              (Words{"one", "two words", "three", "four"}));
    EXPECT_EQ(ssh_includes("Include one # two\n"), Words{"one"});
}

TEST(SshSettings, NothingElseIsOne) {
    EXPECT_EQ(ssh_includes(""), Words());
    EXPECT_EQ(ssh_includes("# Include one\nIncludes two\nHost Include\n\n \nInclude\nInclude \"\n"), Words());
}

} // namespace
} // namespace containerize::session
