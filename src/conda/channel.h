// A channel as the user names it, and where it is.
#pragma once

#include "conda/config.h"
#include "util/error.h"

#include <string>
#include <string_view>
#include <vector>

namespace containerize::conda {

struct Channel {
    std::string name; ///< as shown and as `channel::package` names it: "conda-forge", or the URL
    std::string url;  ///< canonical: "https://conda.anaconda.org/conda-forge", "file:///srv/channel"; no
                      ///< credentials, no subdir, no '/' at the end. What records are filed under.
    std::vector<std::string> mirrors; ///< where to fetch from, in this order, with credentials; at least one

    bool operator==(const Channel& other) const { return url == other.url; }
};

/// What a text means: a name ("conda-forge", "dask/label/dev"), a URL (a subdir at its end is dropped), a
/// path ("/x", "./x", "~/x"), or several channels where it names a multichannel ("defaults").
Result<std::vector<Channel>> resolve_channel(const Located& asked, const Config& config);

/// Whether the channel of a match spec ("conda-forge", "https://conda.anaconda.org/conda-forge", "defaults",
/// "pkgs/main") means the channel at this canonical URL.
bool is_channel(std::string_view asked, std::string_view url, const Config& config);

/// Whether packages from there come under Anaconda's terms of service: repo.anaconda.com/pkgs/*, and what
/// mirrors it under conda.anaconda.org.
bool has_anaconda_terms(const Channel& channel);

struct ChannelChoice {
    std::vector<Channel> channels;  ///< most important first, each once
    std::vector<std::string> notes; ///< lines to show to the user
};

/// The channels of a build: those of the input, then those of the configuration unless the input says
/// `nodefaults`; conda-forge where nobody named any; last, as mamba has it, those of `channel::package`
/// specs. Anaconda's are left out with a note, or refused where no other is left, unless `allow_defaults` or
/// the site's configuration permits them.
Result<ChannelChoice> choose_channels(const std::vector<Located>& asked,
                                      const std::vector<Located>& of_packages, const Config& config,
                                      bool allow_defaults);

/// The same judgement of the channels (by URL) that a list or a lock has its packages from: an error where
/// the site does not allow one, else lines to show to the user.
Result<std::vector<std::string>> check_listed_channels(const std::vector<Located>& channels,
                                                       const Config& config);

/// `url` (of a package) as it has to be asked for, in this order: by the mirrors and credentials of the one
/// of `channels` that it lies in, else by the configuration's mirrors of its channel, else with its tokens.
std::vector<std::string> download_urls(const std::string& url, const std::vector<Channel>& channels,
                                       const Config& config);

} // namespace containerize::conda
