// Resolves a channel, as the user names it, to its URLs.
#pragma once

#include "conda/conda_config.h"
#include "core/error.h"

#include <string>
#include <string_view>
#include <vector>

namespace containerize::conda {

struct Channel {
    std::string name; ///< shown and used in `channel::package`: "conda-forge", or the URL
    std::string url;  ///< canonical: "https://conda.anaconda.org/conda-forge", "file:///srv/channel"; no
                      ///< credentials, subdir or final '/'. Identifies the channel in records.
    std::vector<std::string> mirrors; ///< URLs to fetch from, in this order, with credentials; at least one

    bool operator==(const Channel& other) const { return url == other.url; }
};

/// Resolves a name ("conda-forge", "dask/label/dev"), a URL (without a trailing subdir), a path ("/x", "./x",
/// "~/x"), or a multichannel ("defaults"), which gives several channels.
Result<std::vector<Channel>> resolve_channel(const Located& asked, const Config& config);

/// Whether the channel in a match spec ("conda-forge", "https://conda.anaconda.org/conda-forge", "defaults",
/// "pkgs/main") is the one at this canonical URL.
bool is_channel(std::string_view asked, std::string_view url, const Config& config);

/// Whether the channel's packages are under Anaconda's terms of service: repo.anaconda.com/pkgs/* and its
/// mirrors on conda.anaconda.org.
bool has_anaconda_terms(const Channel& channel);

struct ChannelChoice {
    std::vector<Channel> channels;  ///< by priority, highest first, without duplicates
    std::vector<std::string> notes; ///< lines to show to the user
};

/// Returns the channels of a build: those of the input; then those of the configuration, unless the input has
/// `nodefaults`; conda-forge if there are none; last, as in mamba, those of `channel::package` specs. Unless
/// `allow_defaults` or the site's configuration permits them, Anaconda's channels are left out with a note;
/// it is an error if no other remains.
Result<ChannelChoice> choose_channels(const std::vector<Located>& asked,
                                      const std::vector<Located>& of_packages, const Config& config,
                                      bool allow_defaults);

/// Applies the site's policy to the channels (URLs) of a list's or lock's packages. Fails if one is not
/// allowed; otherwise returns lines to show to the user.
Result<std::vector<std::string>> check_listed_channels(const std::vector<Located>& channels,
                                                       const Config& config);

/// What names a channel's package list in a cache: its address, for a bucket of S3 that on its server.
std::string list_address(const Channel& channel, const std::string& subdir);

/// Returns the URLs from which to download the package at `url`, best first: from the mirrors of its channel
/// in `channels`, else from configured mirrors, else from `url` itself; all with credentials.
std::vector<std::string> download_urls(const std::string& url, const std::vector<Channel>& channels,
                                       const Config& config);

} // namespace containerize::conda
