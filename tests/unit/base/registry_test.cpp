#include "../http_server.h"
#include "../temporary.h"
#include "base/registry.h"

#include <gtest/gtest.h>

namespace containerize::base {
namespace {

using test::HttpServer;
using test::TemporaryDirectory;

class Pull : public testing::Test {
protected:
    /// The error of pulling a layer of an image from a registry.
    std::string failure(const std::string& registry_name,
                        const std::map<std::string, std::string>& proxies = {}) const {
        RegistrySettings settings{.http = {}, .urls = {}, .environment = {}, .progress = {}};
        settings.http.retries = 0;
        settings.http.proxies = proxies;
        settings.progress = [](std::uint64_t, double) {};
        Registry registry(*parse_reference("docker://" + registry_name + "/image:1"), settings);
        registry.download_to(directory.path());
        const Descriptor layer{
            .media_type = {}, .digest = "sha256:" + std::string(64, '0'), .size = 7, .name = {}};
        const auto opened = registry.open(layer, nullptr);
        return opened ? "no error" : to_string(opened.error());
    }

    TemporaryDirectory directory;
};

} // namespace

TEST_F(Pull, FailuresAreToldInWordsOfImages) {
    directory.write("served/v2/image/blobs/sha256:" + std::string(64, '0'), "content");
    const HttpServer server(directory / "served");
    const std::pair<std::string, std::string> expected[] = {
        {failure("127.0.0.1:" + server.port()), "do not match their checksums"},
        {failure("127.0.0.1:1"), "Behind a proxy, set https_proxy."},
        {failure("registry.example", {{"all", "http://proxy.invalid"}}), "(from https_proxy)"}};
    for (const auto& [said, hint] : expected) {
        EXPECT_TRUE(said.contains(hint)) << said;
        for (const char* word : {"conda", "channel", "package"})
            EXPECT_FALSE(said.contains(word)) << said;
    }
}

} // namespace containerize::base
