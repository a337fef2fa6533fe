// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <system_error>

#include "frame/announce.hpp"
#include "frame/arguments.hpp"
#include "frame/file_descriptor.hpp"

namespace example {

/// A TCP connection to the other program; each call ends within the time limit.
class peer_socket {
  using clock = std::chrono::steady_clock;

 public:
  explicit peer_socket(const arguments& given) : timeout_{given.timeout} {
    addrinfo wanted{};
    wanted.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int unknown =
        ::getaddrinfo(given.address.c_str(), std::to_string(given.port).c_str(), &wanted, &found);
    if (unknown != 0) throw std::runtime_error{given.address + ": " + ::gai_strerror(unknown)};
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> where{found, ::freeaddrinfo};
    socket_ = file_descriptor{::socket(where->ai_family, type, where->ai_protocol)};
    if (socket_.get() < 0) fail(errno, "making a TCP socket");
    if (given.listens) {
      listen(*where, given);
    } else {
      connect(*where, given);
    }
  }

  void send(std::span<const std::byte> bytes) const {
    const auto deadline = clock::now() + timeout_;
    while (!bytes.empty()) {
      await(POLLOUT, deadline, "sending to the other program");
      const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count >= 0) bytes = bytes.subspan(static_cast<std::size_t>(count));
      if (count < 0 && errno != EAGAIN) fail(errno, "sending to the other program");
    }
  }

  void receive(std::span<std::byte> bytes) const {
    const auto deadline = clock::now() + timeout_;
    while (!bytes.empty()) {
      await(POLLIN, deadline, "waiting for the other program");
      const ssize_t count = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
      if (count == 0) throw std::runtime_error{"the other program has ended early"};
      if (count > 0) bytes = bytes.subspan(static_cast<std::size_t>(count));
      if (count < 0 && errno != EAGAIN) fail(errno, "waiting for the other program");
    }
  }

 private:
  static constexpr int type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

  void listen(const addrinfo& where, const arguments& given) {
    const int yes = 1;
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (::bind(socket_.get(), where.ai_addr, where.ai_addrlen) != 0 ||
        ::listen(socket_.get(), 1) != 0) {
      fail(errno, "listening on " + to_string(given));
    }
    announce(given);
    const auto deadline = clock::now() + timeout_;
    file_descriptor accepted;
    while (accepted.get() < 0) {
      await(POLLIN, deadline, "waiting for somebody to connect to " + to_string(given));
      accepted =
          file_descriptor{::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)};
      if (accepted.get() < 0 && errno != EAGAIN && errno != ECONNABORTED) {
        fail(errno, "accepting a connection");
      }
    }
    socket_ = std::move(accepted);
  }

  void connect(const addrinfo& where, const arguments& given) const {
    int number = 0;
    if (::connect(socket_.get(), where.ai_addr, where.ai_addrlen) != 0) number = errno;
    if (number == EINPROGRESS) {
      await(POLLOUT, clock::now() + timeout_, "connecting to " + to_string(given));
      socklen_t length = sizeof number;
      ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &number, &length);
    }
    if (number != 0) fail(number, "connecting to " + to_string(given));
  }

  void await(short event, clock::time_point deadline, const std::string& what) const {
    for (;;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock::now());
      pollfd watched{socket_.get(), event, 0};
      const int ready = left.count() > 0 ? ::poll(&watched, 1, static_cast<int>(left.count())) : 0;
      if (ready > 0) return;
      if (ready == 0) fail(ETIMEDOUT, what);
      if (errno != EINTR) fail(errno, what);
    }
  }

  [[noreturn]] static void fail(int number, const std::string& what) {
    throw std::system_error{number, std::generic_category(), what};
  }

  std::chrono::nanoseconds timeout_;
  file_descriptor socket_;
};

}  // namespace example
