// A channel as the user names it, and where it is.
#pragma once

#include <string>
#include <vector>

namespace containerize::conda {

struct Channel {
    std::string name; ///< as shown and as `channel::package` names it: "conda-forge", or the URL
    std::string url;  ///< canonical: "https://conda.anaconda.org/conda-forge", "file:///srv/channel"; no
                      ///< credentials, no subdir, no '/' at the end. What records are filed under.
    std::vector<std::string> mirrors; ///< where to fetch from, in this order, with credentials; at least one
};

} // namespace containerize::conda
