// A client for the OCI distribution protocol, as far as needed to pull images.
#pragma once

#include "base/blobs.h"
#include "core/variables.h"
#include "http/http.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace containerize::base {

/// Another URL for a registry: a mirror, plain http, or a path.
struct RegistryUrl {
    std::string registry; ///< "docker.io"
    std::string url;      ///< "https://mirror.example.org/docker"; no '/' at the end
};

struct RegistrySettings {
    http::Settings http;
    std::vector<RegistryUrl> urls; ///< tried in this order, then the registry itself unless it is among them
    Environment environment;       ///< where logins are stored
    std::function<void(std::uint64_t bytes, double rate)> progress; ///< may be called from another thread
};

/// The URLs to ask for a registry: "https://registry-1.docker.io". http if it is on this machine.
std::vector<std::string> registry_addresses(const std::string& registry,
                                            const std::vector<RegistryUrl>& urls);

class Registry : public Blobs {
public:
    Registry(Reference reference, RegistrySettings settings);
    ~Registry() override;

    /// Where layers are downloaded to; to be set before any is opened. There are at most two: one is read,
    /// and its space is freed on the way, while the next one is downloaded. Continues what an earlier try
    /// left.
    void download_to(std::filesystem::path directory);

    Result<ImageInfo> info() override;
    Result<ReadMore> open(const Descriptor& layer, const Descriptor* next) override;

private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace containerize::base
