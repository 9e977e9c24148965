#include "core/url.h"

#include <tuple>

#include <gtest/gtest.h>

namespace containerize {

TEST(Url, Credentials) {
    const std::pair<const char*, const char*> cases[] = {
        {"https://conda.anaconda.org/conda-forge", "https://conda.anaconda.org/conda-forge"},
        {"https://me:pass@host/x", "https://host/x"},
        {"https://me:p@ss@host:8080/x", "https://host:8080/x"},
        {"https://me:pa/ss@host/x", "https://host/x"},
        {"https://me:p@s/s@host/x", "https://host/x"},
        {"https://me:p@s.t/s@host.org/x", "https://host.org/x"},
        {"https://me:p@s/s@host:8080", "https://host:8080"},
        {"https://me:p@s?s@host/x", "https://host/x"},
        {"https://me:12/p@host.org/x", "https://host.org/x"},
        {"https://me@you:/p@host/x", "https://host/x"},
        {"https://me:p@s/s@host.org/x?y=@z", "https://host.org/x"},
        {"https://host/t/ab/t/cd/x/t/ef", "https://host/x"},
        {"https://me:/p@host/x", "https://host/x"},
        // An '@' in the path does not belong to the login:
        {"https://me:pass@host/x@y", "https://host/x@y"},
        {"https://me:pass@host/x@v1.2", "https://host/x@v1.2"},
        {"https://me:pass@host.org/x@feature/y", "https://host.org/x@feature/y"},
        {"https://me@host/x@y/z", "https://host/x@y/z"},
        {"https://[::1]:80/x@y", "https://[::1]:80/x@y"},
        {"https://me:pa@s/s@[::1]:80/x", "https://[::1]:80/x"},
        {"https://me:pa@s/s@[no@", "https://s/s@[no@"},
        {"https://host/x@y", "https://host/x@y"},
        {"https://host:80/x@y", "https://host:80/x@y"},
        {"https://conda.anaconda.org/t/ab-12_3/private/linux-64",
         "https://conda.anaconda.org/private/linux-64"},
        {"https://host:8080/conda/t/ab-12/private", "https://host:8080/conda/private"},
        {"https://host/t/ab-12", "https://host"},
        {"https://host/t/a.b=c~d+e%2Ff/private", "https://host/private"},
        {"https://host/t/a.b=", "https://host"},
        {"https://me@host/t/ab/x?token=1#sha", "https://host/x"},
        // These are no tokens:
        {"https://host/t/", "https://host/t/"},
        {"https://host/pkgs/t/libfoo-1.0.conda", "https://host/pkgs/t/libfoo-1.0.conda"},
        {"file:///home/t/user/channel", "file:///home/t/user/channel"},
        {"/srv/t/x/y", "/srv/t/x/y"},
        {"conda-forge", "conda-forge"},
        {"me@host", "me@host"},
    };
    for (const auto& [url, expected] : cases) {
        EXPECT_EQ(without_credentials(url), expected);
        EXPECT_EQ(without_credentials(expected), expected) << "a second time nothing changes";
    }
}

TEST(Url, TextWithoutEnd) {
    const auto url = "https://me:p" + std::string(1'000'000, '@') + "/" + std::string(1'000'000, '@');
    EXPECT_LT(without_credentials(url).size(), url.size());
}

TEST(Url, CredentialsWithinALine) {
    const std::pair<const char*, const char*> cases[] = {
        {"numpy >=1.26 # no URL", "numpy >=1.26 # no URL"},
        {"--extra-index-url=https://u:p@host/simple", "--extra-index-url=https://host/simple"},
        {"-f https://u:p@host/a -i https://u:p@other/b", "-f https://host/a -i https://other/b"},
        {"-ihttps://u:p@host/simple", "-ihttps://host/simple"},
        {"a @ https://u:p@host/a.whl#sha256=12", "a @ https://host/a.whl#sha256=12"},
        {"https://u:p#w@host/x", "https://host/x"},
        {"a @ git+https://token@host/r@v1#egg=a", "a @ git+https://host/r@v1#egg=a"},
        {"a @ git+ssh://git@host/r", "a @ git+ssh://git@host/r"},
        {"a @ git+ssh://git:pw@host/r", "a @ git+ssh://git@host/r"},
        {"https://host/t/ab-12/c::numpy >=1", "https://host/c::numpy >=1"},
        {"numpy[channel='https://u:p@host/c',build=x]", "numpy[channel='https://host/c',build=x]"},
        {"://", "://"},
    };
    for (const auto& [line, expected] : cases)
        EXPECT_EQ(without_credentials_within(line), expected);
}

TEST(Url, Parts) {
    EXPECT_TRUE(is_url("https://x"));
    EXPECT_TRUE(is_url("git+ssh://x"));
    EXPECT_FALSE(is_url("conda-forge"));
    EXPECT_FALSE(is_url("://x"));
    EXPECT_FALSE(is_url("a b://x"));
    EXPECT_EQ(url_host("https://Me:x@Host.Org:8443/y"), "host.org:8443");
    EXPECT_EQ(url_host("file:///x"), "");
    EXPECT_EQ(url_host("host/x"), "");
}

TEST(Url, PlacesOfLogins) {
    const std::tuple<const char*, const char*, bool> cases[] = {
        {"https://host/x", "https://host/x/y", true},
        {"https://host/x", "https://host/xy", false},
        {"https://host/x", "http://host/x", false},
        {"host/x", "http://host/x/y", true},
        {"host", "https://host/x", true},
        {"host", "https://host:8443/x", true},
        {"host:8443", "https://host:8443/x", true},
        {"host:8443", "https://host/x", false},
        {"host", "https://hostile/x", false},
        {"host", "https://host.evil/x", false},
        {"host", "https://evil/host", false},
        {"[::1]", "http://[::1]:80/x", true},
        {"*.prefix.dev", "https://repo.prefix.dev/x", true},
        {"*.prefix.dev", "https://a.b.prefix.dev:443/x", true},
        {"*.prefix.dev", "https://prefix.dev/x", true},
        {"*.prefix.dev", "https://evilprefix.dev/x", false},
        {"*.prefix.dev", "https://prefix.dev.evil/x", false},
        {"*.prefix.dev", "https://evil/prefix.dev", false},
        {"*.", "https://host/x", false},
        {"", "https://host/x", false},
        {"host", "file:///host", false},
    };
    for (const auto& [place, url, fits] : cases)
        EXPECT_EQ(is_place_of(place, url), fits) << place << " for " << url;
}

TEST(Url, Encoding) {
    EXPECT_EQ(url_encoded("https://h/a b%20c+d~1!2.conda"), "https://h/a%20b%20c+d~1!2.conda");
    EXPECT_EQ(url_encoded("\xc3\xa4\n"), "%C3%A4%0A");
    EXPECT_EQ(url_decoded("a%20b%2Fc%zz%4"), "a b/c%zz%4");
    EXPECT_EQ(file_url("/a b/100%/x#y?"), "file:///a%20b/100%25/x%23y%3F");
    EXPECT_EQ(file_url_path(file_url("/a b/100%/x#y?")), "/a b/100%/x#y?");
    EXPECT_EQ(file_url_path("file://localhost/x"), "/x");
    EXPECT_EQ(file_url_path("https://h/x"), "");
}

} // namespace containerize
