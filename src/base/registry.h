// A small client of the OCI distribution protocol: what is needed to pull, and nothing else.
#pragma once

#include "base/blobs.h"
#include "util/http.h"
#include "util/process.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace containerize::base {

/// A mirror of a registry, or how to reach it: by plain http, through a path.
struct RegistryUrl {
    std::string registry; ///< "docker.io"
    std::string url;      ///< "https://mirror.example.org/docker"; no '/' at the end
};

struct RegistrySettings {
    http::Settings http;
    std::vector<RegistryUrl> urls; ///< asked in their order, then the registry itself unless one is its own
    Environment environment;       ///< where logins are
    std::function<void(std::uint64_t bytes, double rate)> progress; ///< may be called from another thread
};

/// Where the registry is asked: "https://registry-1.docker.io". By http where it is this machine.
std::vector<std::string> registry_addresses(const std::string& registry,
                                            const std::vector<RegistryUrl>& urls);

class Registry : public Blobs {
public:
    Registry(Reference reference, RegistrySettings settings);
    ~Registry() override;

    /// Where layers go, before any is opened: at most two at a time, one that is read, and takes ever less
    /// room, and one that is fetched meanwhile. What is there of an earlier try is used.
    void download_to(std::filesystem::path directory);

    Result<ImageInfo> info() override;
    Result<ReadMore> open(const Descriptor& layer, const Descriptor* next) override;

private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace containerize::base
