// Compiles Python sources that are in memory, in interpreters that run until all is compiled.
#pragma once

#include "core/error.h"
#include "util/process.h"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::environments {

struct ByteCode {
    std::string pyc; ///< the whole file, which Python never compares with the source; empty if there is none
    std::string reason; ///< why this Python cannot compile the source: "SyntaxError: invalid syntax, line 3"
};

/// The same source, path and Python always give the same bytes, whatever else was compiled before.
class ByteCodeWorkers {
public:
    struct Settings {
        /// Makes the command that runs these arguments where Python is, such as BuildContext::inside().
        std::function<Command(std::vector<std::string>)> inside;
        std::string python;   ///< its path there
        unsigned workers = 1; ///< interpreters; each is started when it is needed
        std::chrono::seconds limit = std::chrono::minutes(10); ///< for one source
    };
    /// Starts the first interpreter. Fails if this Python does not run.
    static Result<std::unique_ptr<ByteCodeWorkers>> start(Settings settings);
    ByteCodeWorkers(const ByteCodeWorkers&) = delete;
    ByteCodeWorkers& operator=(const ByteCodeWorkers&) = delete;
    ~ByteCodeWorkers();

    /// Whether this Python can use byte-code without looking at the source, as Python 3.7 and later can.
    [[nodiscard]] bool supported() const;
    /// The four bytes that byte-code for this Python begins with, as hexadecimal digits.
    [[nodiscard]] const std::string& magic() const;
    /// The middle of the names of its files, such as "cpython-311".
    [[nodiscard]] const std::string& cache_tag() const;

    /// Waits for a free interpreter. Several threads may call this. `path` is recorded as the source's.
    /// Fails after an interrupt, if Python is not supported, and if the interpreter ended (it crashed, or had
    /// too little memory) or reached the limit: then the next call gets a new one.
    Result<ByteCode> compile(std::string_view path, std::string_view source);

private:
    class Implementation;
    explicit ByteCodeWorkers(std::unique_ptr<Implementation> implementation);
    std::unique_ptr<Implementation> implementation_;
};

} // namespace containerize::environments
