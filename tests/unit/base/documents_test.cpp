// Documents of registries, tools and images are understood, or refused with a reason.
#include "base/challenge.h"
#include "base/image_reference.h"
#include "base/oci.h"
#include "base/registry.h"
#include "base/registry_logins.h"
#include "base/sif.h"
#include "good.h"
#include "temporary.h"

#include <array>
#include <cstring>

#include <gtest/gtest.h>

namespace containerize::base {
namespace {

using Kind = Reference::Kind;
using test::TemporaryDirectory;

const std::string good_digest = "sha256:" + std::string(64, 'a');
const std::string other_digest = "sha256:" + std::string(64, 'b');

std::string spelled(const std::string& text) {
    const auto reference = parse_reference(text);
    return reference ? reference->text : "refused: " + reference.error().why;
}

TEST(References, HaveOneSpelling) {
    EXPECT_EQ(spelled("docker://debian"), "docker://docker.io/library/debian:latest");
    EXPECT_EQ(spelled("docker://index.docker.io/library/debian:12"), "docker://docker.io/library/debian:12");
    EXPECT_EQ(spelled("docker://rocm/pytorch:rocm6.2"), "docker://docker.io/rocm/pytorch:rocm6.2");
    EXPECT_EQ(spelled("docker://localhost/x"), "docker://localhost/x:latest");
    EXPECT_EQ(spelled("docker://127.0.0.1:5000/a/b/c"), "docker://127.0.0.1:5000/a/b/c:latest");
    EXPECT_EQ(spelled("docker://[::1]:5000/a"), "docker://[::1]:5000/a:latest");
    EXPECT_EQ(spelled("docker://ghcr.io/a/b@" + good_digest), "docker://ghcr.io/a/b@" + good_digest);
    EXPECT_EQ(spelled("docker://ghcr.io/a/b:1@" + good_digest), "docker://ghcr.io/a/b:1@" + good_digest);
}

TEST(References, AreRefused) {
    for (const std::string text :
         {"", "docker://", "docker://Debian", "docker://a:b:c", "docker://a@sha256:12", "docker://a/../b",
          "docker://a//b", "docker://host.org/", "docker://-a", "docker://a:.tag", "docker://a b",
          "docker://x?y.z/a", "docker://u:p@host.org/a", "oci:/does/not/exist", "/does/not/exist.sif",
          "nonsense", "/etc/passwd"})
        EXPECT_TRUE(spelled(text).starts_with("refused")) << text << " is " << spelled(text);
}

TEST(References, NameLocalThings) {
    const TemporaryDirectory directory;
    const auto place = directory.path().string();
    directory.write("a.sif", "");
    directory.write("b.sqfs", "");
    directory.write("c.tar", "");
    directory.write("layout/index.json", "");
    EXPECT_EQ(parse_reference(place + "/a.sif")->kind, Kind::sif);
    EXPECT_EQ(parse_reference(place + "/b.sqfs")->kind, Kind::squashfs);
    EXPECT_EQ(parse_reference(place)->kind, Kind::directory);
    EXPECT_EQ(parse_reference("docker-archive:" + place + "/c.tar:name:tag")->tag, "name:tag");
    const auto layout = test::good(parse_reference("oci:" + place + "/layout:v1"));
    EXPECT_EQ(layout.path, directory / "layout");
    EXPECT_EQ(layout.tag, "v1");
    EXPECT_FALSE(parse_reference("oci:" + place + "/c.tar"));
    EXPECT_FALSE(parse_reference("oci-archive:" + place));
}

TEST(Challenges, TokensAreOnesThatAHeaderCanHold) {
    EXPECT_EQ(parse_token(R"({"token": "ab.c-1", "access_token": "x"})"), "ab.c-1");
    EXPECT_EQ(parse_token(R"({"token": 1, "access_token": "x"})"), "x");
    for (const char* none :
         {"", "[]", "{}", R"({"token": ""})", R"({"token": "a\r\nHost: b"})", R"({"token": "a b"})"})
        EXPECT_FALSE(parse_token(none)) << none;
}

TEST(Challenges, AreUnderstood) {
    const auto found = parse_challenges(
        R"(Bearer realm="https://auth.example.org/token?a=b,c",service="registry \"x\"" ,scope=pull, Basic realm="y")");
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].scheme, "bearer");
    EXPECT_EQ(found[0].parameters.at("realm"), "https://auth.example.org/token?a=b,c");
    EXPECT_EQ(found[0].parameters.at("service"), "registry \"x\"");
    EXPECT_EQ(found[0].parameters.at("scope"), "pull");
    EXPECT_EQ(found[1].scheme, "basic");
    for (const char* damaged :
         {"", ",", "=", "Bearer realm=\"", "Bearer realm=", "\"\"", "a=b", "Bearer \\", "a b=\"\\"})
        EXPECT_LE(parse_challenges(damaged).size(), 2U) << damaged;
}

TEST(Registries, AreAskedWhereTheyAre) {
    using List = std::vector<std::string>;
    EXPECT_EQ(registry_addresses("docker.io", {}), List{"https://registry-1.docker.io"});
    EXPECT_EQ(registry_addresses("localhost:5000", {}), List{"http://localhost:5000"});
    EXPECT_EQ(registry_addresses("127.evil.org", {}), List{"https://127.evil.org"});
    EXPECT_EQ(registry_addresses("docker.io",
                                 {{"docker.io", "https://mirror.org/hub"}, {"quay.io", "https://no.org"}}),
              (List{"https://mirror.org/hub", "https://registry-1.docker.io"}));
    // A mirror with http is used as it was configured; for the registry itself https would be used.
    EXPECT_EQ(registry_addresses("r.org:80", {{"r.org:80", "http://r.org:80"}}), List{"http://r.org:80"});
}

class Logins : public testing::Test {
protected:
    std::string login(const std::string& registry, const std::string& repository = "a/b") {
        auto found = find_login(registry, repository, environment);
        if (!found) return "refused: " + to_string(found.error());
        return *found ? (*found)->user + ":" + (*found)->password : "none";
    }
    TemporaryDirectory place;
    Environment environment{{"HOME", place.path().string()},
                            {"PATH", place.path().string() + ":/usr/bin:/bin"}};
};

TEST_F(Logins, AreFoundByRegistry) {
    // The values of "auth" decode to "me:secret" and "docker:x=y".
    place.write(".docker/config.json", R"({"auths": {
        "reg.org": {"auth": "bWU6c2VjcmV0"}, "https://index.docker.io/v1/": {"auth": "ZG9ja2VyOng9eQ=="},
        "reg.org/special": {"username": "part", "password": "1"}, "empty.org": {}}})");
    place.write(".apptainer/docker-config.json", R"({"auths": {"other.org": {"auth": "bWU6c2VjcmV0"}}})");
    EXPECT_EQ(login("reg.org"), "me:secret");
    EXPECT_EQ(login("reg.org", "special/image"), "part:1");
    EXPECT_EQ(login("reg.org", "specially/image"), "me:secret");
    EXPECT_EQ(login("docker.io"), "docker:x=y");
    EXPECT_EQ(login("other.org"), "me:secret");
    EXPECT_EQ(login("empty.org"), "none");
    EXPECT_EQ(login("reg.org.evil"), "none");
}

TEST_F(Logins, ComeFromHelpers) {
    place.write(".docker/config.json", R"({"credHelpers": {"reg.org": "trial"}, "credsStore": "absent"})");
    const auto helper = place.write(
        "docker-credential-trial",
        "#!/bin/sh\nread -r server || :\n"
        "[ \"$1\" = get ] && echo \"{\\\"Username\\\": \\\"u\\\", \\\"Secret\\\": \\\"s-$server\\\"}\"\n");
    fs::permissions(helper, fs::perms::owner_all);
    EXPECT_EQ(login("reg.org"), "u:s-reg.org");
    EXPECT_EQ(login("else.org"), "none");
}

TEST_F(Logins, DamagedFilesAreNamedWithoutTheirSecrets) {
    for (const std::string content : {R"({"auths": {"reg.org": {"auth": "hunter2!"}}})", R"(["hunter2")",
                                      "hunter2", R"({"credHelpers": {"reg.org": "../hunter2"}})"}) {
        place.write(".docker/config.json", content);
        const auto answer = login("reg.org");
        EXPECT_TRUE(answer.starts_with("refused")) << content;
        EXPECT_TRUE(answer.contains("config.json")) << answer;
        if (!content.contains("..")) {
            EXPECT_FALSE(answer.contains("hunter2")) << answer;
        }
    }
}

TEST(Documents, ChooseThisArchitecture) {
    const std::string index =
        R"({"schemaVersion": 2, "manifests": [
        {"mediaType": "x", "digest": ")" +
        other_digest + R"(", "size": 1, "platform": {"os": "linux", "architecture": "s390"}},
        {"mediaType": "x", "digest": ")" +
        other_digest + R"(", "size": 1, "platform": {"os": "unknown", "architecture": "unknown"}},
        {"mediaType": "x", "digest": ")" +
        good_digest + R"(", "size": 2, "platform": {"os": "linux", "architecture": "amd64"}}]})";
    const auto document = test::good(parse_document(index, "here"));
    const auto chosen = test::good(choose(document.index, "amd64", {}, "here"));
    EXPECT_EQ(chosen.digest, good_digest);
    EXPECT_EQ(to_string(test::error_of(choose(document.index, "riscv64", {}, "here"))),
              "here: there is no image for linux/riscv64: available images: linux/amd64, linux/s390");
}

TEST(Documents, AreRefused) {
    const auto why = [](const std::string& text) {
        const auto document = parse_document(text, "here");
        return document ? "accepted" : document.error().why;
    };
    const auto manifest = [](const std::string& layers) {
        return R"({"schemaVersion": 2, "config": {"digest": ")" + good_digest +
               R"(", "size": 1}, "layers": [)" + layers + "]}";
    };
    EXPECT_EQ(why(manifest("")), "accepted");
    EXPECT_TRUE(why("{").contains("damaged"));
    EXPECT_TRUE(why("[]").contains("damaged"));
    EXPECT_TRUE(why("{}").contains("lists no layers"));
    EXPECT_TRUE(why(R"({"schemaVersion": 1, "layers": []})").contains("Docker's format 1"));
    EXPECT_TRUE(why(manifest(R"({"digest": "sha256:../../etc/passwd", "size": 1})"))
                    .contains("is not a SHA-256 digest"));
    EXPECT_TRUE(why(manifest(R"({"digest": ")" + good_digest + R"(", "size": -1})")).contains("the size of"));
    std::string many;
    for (int i = 0; i < 20000; ++i)
        many += (i > 0 ? "," : "") + (R"({"digest": ")" + good_digest + R"(", "size": 1})");
    EXPECT_EQ(why(manifest(many)), "it has 20000 layers, and at most 512 are accepted");
    EXPECT_FALSE(parse_config("[1", "here"));
    // A message does not quote a large document completely.
    const std::string long_text(1U << 20U, 'x');
    EXPECT_LT(why("{\"" + long_text).size(), 1000U);
    EXPECT_LT(to_string(parse_config("{\"" + long_text, "here").error()).size(), 1000U);
    std::vector<IndexEntry> index(1000);
    for (std::size_t i = 0; i < index.size(); ++i)
        index[i].platform = {
            .os = "plan9", .architecture = std::to_string(i) + long_text.substr(0, 1000), .variant = {}};
    EXPECT_LT(to_string(choose(index, "amd64", "", "here").error()).size(), 10'000U);
    const auto config = test::good(parse_config(
        R"({"architecture": "amd64", "config": {"Env": ["A=b", "=x", 7, "none"], "Cmd": null}})", "here"));
    EXPECT_EQ(config.environment, std::vector<std::string>{"A=b"});
}

/// A file with one primary partition and an OCI configuration, as written by Apptainer.
std::string sif_file(std::int32_t filesystem, const std::string& architecture, std::uint64_t size) {
    std::string bytes(128 + 2 * 585, '\0');
    const auto put = [&bytes](std::size_t at, auto value) {
        std::memcpy(bytes.data() + at, &value, sizeof value);
    };
    bytes.replace(32, 9, "SIF_MAGIC");
    put(88, std::int64_t{2});
    put(96, std::int64_t{128});
    put(104, std::int64_t{2 * 585});
    const std::string config = R"({"architecture": "amd64", "config": {"Env": ["A=b"]}})";
    const auto first = 128U;
    put(first, std::int32_t{0x4006});
    put(first + 4, char{1});
    put(first + 17, static_cast<std::int64_t>(bytes.size()));
    put(first + 25, static_cast<std::int64_t>(config.size()));
    bytes.replace(first + 73, 10, "oci-config");
    const auto second = first + 585;
    put(second, std::int32_t{0x4004});
    put(second + 4, char{1});
    put(second + 17, std::int64_t{4096});
    put(second + 25, size);
    put(second + 201, filesystem);
    put(second + 205, std::int32_t{2});
    bytes.replace(second + 209, 2, architecture);
    bytes += config;
    bytes.resize(4096 + 100, 'x');
    return bytes;
}

TEST(SifFiles, TellWhereTheRootIs) {
    const TemporaryDirectory directory;
    const auto image = test::good(read_sif(directory.write("a.sif", sif_file(1, "02", 100))));
    EXPECT_EQ(image.offset, 4096U);
    EXPECT_EQ(image.size, 100U);
    EXPECT_EQ(image.architecture, "amd64");
    ASSERT_TRUE(image.config);
    EXPECT_EQ(image.config->environment, std::vector<std::string>{"A=b"});
}

TEST(SifFiles, AreRefused) {
    const TemporaryDirectory directory;
    const auto why = [&](const std::string& content) {
        const auto image = read_sif(directory.write("a.sif", content));
        return image ? "accepted" : image.error().why;
    };
    EXPECT_EQ(why(sif_file(5, "02", 100)), "its root filesystem is encrypted");
    EXPECT_EQ(why(sif_file(2, "02", 100)), "its root filesystem is not squashfs");
    EXPECT_EQ(why(sif_file(1, "02", 101)), "it is truncated");
    EXPECT_EQ(why(sif_file(1, "02", ~0ULL)), "it is truncated");
    const auto whole = sif_file(1, "02", 100);
    for (const std::size_t size : {0U, 31U, 127U, 128U, 700U, 1297U, 1298U, 4195U})
        EXPECT_NE(why(whole.substr(0, size)), "accepted") << size;
    auto strange = whole;
    std::memset(strange.data() + 88, 0x7F, 8); // a huge number of descriptors
    EXPECT_NE(why(strange), "accepted");
    // Any single wrong byte in the tables: no crash, and nothing is read beyond the end of the file.
    for (std::size_t at = 32; at < 128 + 2 * 585; ++at)
        for (const char value : {'\0', '\xFF', '\x7F'}) {
            auto damaged = whole;
            damaged[at] = value;
            const auto image = read_sif(directory.write("a.sif", damaged));
            if (image) {
                EXPECT_LE(image->offset + image->size, damaged.size()) << at;
            }
        }
}

TEST(SifFiles, AConfigurationIsReadOnce) {
    const TemporaryDirectory directory;
    auto file = sif_file(1, "02", 100);
    constexpr std::size_t size = 585;
    const auto config = file.substr(128, size), partition = file.substr(128 + size, size);
    auto second = config;
    second.replace(17, 8, 8, '\0'); // it then does not name a configuration
    const std::array<std::uint64_t, 3> table = {3, file.size(), 3 * size};
    std::memcpy(file.data() + 88, table.data(), sizeof table);
    file += config + second + partition;
    const auto image = test::good(read_sif(directory.write("a.sif", file)));
    EXPECT_EQ(image.config->environment, std::vector<std::string>{"A=b"});
}

TEST(SifFiles, ScriptsAreReadAsFarAsTheyArePlain) {
    EXPECT_EQ(
        exported_variables("#!/bin/sh\nexport PATH=\"/usr/bin:/bin\"\nexport LANG=\"${LANG:-\"C.UTF-8\"}\"\n"
                           "export E=\"${E:-}\"\nexport X=\"$HOME/x\"\nexport Y=`id`\nexport Z=$(id)\n"
                           "export A=\"a\"; rm -rf /\"\nB=c\nexport C\nexport D=d;rm\nexport F=f g\n"
                           "export  G=g\nexport 1=h\nexport I-J=i\nexport K=k"),
        (std::vector<std::string>{"PATH=/usr/bin:/bin", "LANG=C.UTF-8", "E=", "K=k"}));
    using namespace std::string_view_literals;
    EXPECT_TRUE(exported_variables("export A=\"a\0b\"\nexport B\0=c\nexport C=\0"sv).empty());
}

} // namespace
} // namespace containerize::base
