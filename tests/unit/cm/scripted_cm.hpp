// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <verbena/cm/private_data.hpp>
#include <verbena/verbs/control_table.hpp>

#include "fabricated/device.hpp"

/// RDMA CM in this process: each call is followed by the events that a test has written down for
/// it, or refused. One at a time. It notices what would wait for ever: ids destroyed or moved with
/// events that are not acknowledged.
class scripted_cm {
 public:
  struct event {
    int type;  // newer libraries have more than the header names
    int status = 0;
    std::vector<std::byte> data = introduction();
  };

  /// By the call's name: "resolve_addr", "connect", "accept", …
  std::map<std::string, std::vector<event>> after{
      {"resolve_addr", {{RDMA_CM_EVENT_ADDR_RESOLVED}}},
      {"resolve_route", {{RDMA_CM_EVENT_ROUTE_RESOLVED}}},
      {"connect", {{RDMA_CM_EVENT_CONNECT_RESPONSE}}},
      {"listen", {{RDMA_CM_EVENT_CONNECT_REQUEST}}},
      {"accept", {{RDMA_CM_EVENT_ESTABLISHED}}}};
  std::map<std::string, int> refuse;  ///< an errno
  std::map<std::string, int> count;
  std::vector<std::string> faults;
  int ids = 0;
  int channels = 0;
  int unacknowledged = 0;
  rdma_cm_id* last = nullptr;  ///< the id made last

  explicit scripted_cm(fabricated::device& on) {
    only() = this;
    other_view_.device = &on.native;
    on.table.cm = &table;
  }
  ~scripted_cm() { only() = nullptr; }
  scripted_cm(const scripted_cm&) = delete;
  scripted_cm& operator=(const scripted_cm&) = delete;

  bool is_clean() const {
    return ids == 0 && channels == 0 && unacknowledged == 0 && faults.empty();
  }

  /// An event on an id, by nobody's call.
  void push(rdma_cm_id* of, const event& what) {
    auto* made = new pending{};
    made->bytes = what.data;
    std::memcpy(&made->event, &what.type, sizeof made->event);
    made->status = what.status;
    made->id = of;
    if (what.type == RDMA_CM_EVENT_CONNECT_REQUEST) {
      made->listen_id = of;
      made->id = new_id(of->channel);
    }
    made->param.conn.private_data = made->bytes.data();
    made->param.conn.private_data_len = static_cast<std::uint8_t>(made->bytes.size());
    made->param.conn.responder_resources = made->param.conn.initiator_depth = 4;
    static_cast<channel*>(of->channel)->waiting.push_back(made);
    ::eventfd_write(of->channel->fd, 1);
  }

  static std::vector<std::byte> introduction() {
    const auto bytes = verbena::private_data{3, {}}.write();
    return {bytes.begin(), bytes.end()};
  }

  static const verbena::verbs::cm_table table;

 private:
  struct pending : rdma_cm_event {
    std::vector<std::byte> bytes;
  };
  struct channel : rdma_event_channel {
    std::deque<pending*> waiting;
  };
  struct id : rdma_cm_id {
    int unacknowledged;
  };

  static scripted_cm*& only() {
    static scripted_cm* instance = nullptr;
    return instance;
  }

  rdma_cm_id* new_id(rdma_event_channel* on) {
    auto* made = new id{};
    made->channel = on;
    made->verbs = &other_view_;
    made->port_num = 1;
    made->route.addr.src_addr.sa_family = AF_INET;
    made->route.addr.dst_addr.sa_family = AF_INET;
    ++ids;
    return last = made;
  }

  int called(const char* name, rdma_cm_id* of) {
    ++count[name];
    if (const auto found = refuse.find(name); found != refuse.end()) {
      errno = found->second;
      return -1;
    }
    for (const event& each : after[name]) push(of, each);
    return 0;
  }

  static rdma_event_channel* create_channel(ibv_context*) {
    if (const auto found = only()->refuse.find("channel"); found != only()->refuse.end()) {
      errno = found->second;
      return nullptr;
    }
    auto* made = new channel{};
    made->fd = ::eventfd(0, EFD_SEMAPHORE);
    ++only()->channels;
    return made;
  }
  static void destroy_channel(rdma_event_channel* held) {
    if (!static_cast<channel*>(held)->waiting.empty()) {
      only()->faults.push_back("a channel is destroyed before its ids");
    }
    ::close(held->fd);
    --only()->channels;
    delete static_cast<channel*>(held);
  }
  static int create_id(rdma_event_channel* on, rdma_cm_id** into, void*, rdma_port_space) {
    if (const auto found = only()->refuse.find("create_id"); found != only()->refuse.end()) {
      errno = found->second;
      return -1;
    }
    *into = only()->new_id(on);
    return 0;
  }
  /// Takes out the events of an id, as destroying and moving do.
  static std::vector<pending*> take_waiting(rdma_cm_id* of) {
    std::vector<pending*> taken;
    auto& waiting = static_cast<channel*>(of->channel)->waiting;
    for (auto at = waiting.begin(); at != waiting.end();) {
      if ((*at)->id != of && (*at)->listen_id != of) {
        ++at;
        continue;
      }
      taken.push_back(*at);
      at = waiting.erase(at);
      eventfd_t one = 0;
      ::eventfd_read(of->channel->fd, &one);
    }
    return taken;
  }
  static int destroy_id(rdma_cm_id* held) {
    if (static_cast<id*>(held)->unacknowledged != 0) {
      only()->faults.push_back("an id is destroyed before its events are acknowledged");
    }
    for (pending* each : take_waiting(held)) {
      if (each->id != held) destroy_id(each->id);
      delete each;
    }
    --only()->ids;
    delete static_cast<id*>(held);
    return 0;
  }
  static int migrate_id(rdma_cm_id* of, rdma_event_channel* to) {
    if (only()->called("migrate_id", of) != 0) return -1;
    if (static_cast<id*>(of)->unacknowledged != 0) {
      only()->faults.push_back("an id is moved before its events are acknowledged");
    }
    for (pending* each : take_waiting(of)) {
      static_cast<channel*>(to)->waiting.push_back(each);
      ::eventfd_write(to->fd, 1);
    }
    of->channel = to;
    return 0;
  }
  static int init_qp_attr(rdma_cm_id* of, ibv_qp_attr* into, int* mask) {
    into->port_num = 1;
    into->path_mtu = IBV_MTU_1024;
    into->dest_qp_num = 1;
    into->ah_attr.port_num = 1;
    into->ah_attr.is_global = 1;
    into->max_dest_rd_atomic = into->max_rd_atomic = 4;
    into->timeout = 14;
    *mask |= into->qp_state == IBV_QPS_INIT  ? verbena::transport::rc::to_init
             : into->qp_state == IBV_QPS_RTR ? verbena::transport::rc::to_receive
                                             : verbena::transport::rc::to_send;
    return only()->called("init_qp_attr", of);
  }
  static int get_event(rdma_event_channel* of, rdma_cm_event** into) {
    auto& waiting = static_cast<channel*>(of)->waiting;
    if (waiting.empty()) {
      errno = EAGAIN;
      return -1;
    }
    eventfd_t one = 0;
    ::eventfd_read(of->fd, &one);
    pending* const next = waiting.front();
    waiting.pop_front();
    ++static_cast<id*>(next->id)->unacknowledged;
    ++only()->unacknowledged;
    *into = next;
    return 0;
  }
  static int ack_event(rdma_cm_event* held) {
    --static_cast<id*>(held->id)->unacknowledged;
    --only()->unacknowledged;
    auto* const all = static_cast<pending*>(held);
    std::fill(all->bytes.begin(), all->bytes.end(), std::byte{0xdd});
    delete all;
    return 0;
  }

  ibv_context other_view_{};
};

inline const verbena::verbs::cm_table scripted_cm::table{
    .create_event_channel = create_channel,
    .destroy_event_channel = destroy_channel,
    .create_id = create_id,
    .destroy_id = destroy_id,
    .migrate_id = migrate_id,
    .set_option = [](rdma_cm_id* of, int, int, void*,
                     std::size_t) { return only()->called("set_option", of); },
    .bind_addr = [](rdma_cm_id* of, sockaddr*) { return only()->called("bind_addr", of); },
    .listen = [](rdma_cm_id* of, int) { return only()->called("listen", of); },
    .resolve_addr = [](rdma_cm_id* of, sockaddr*, sockaddr*,
                       int) { return only()->called("resolve_addr", of); },
    .resolve_route = [](rdma_cm_id* of, int) { return only()->called("resolve_route", of); },
    .init_qp_attr = init_qp_attr,
    .connect = [](rdma_cm_id* of, rdma_conn_param*) { return only()->called("connect", of); },
    .establish = [](rdma_cm_id* of) { return only()->called("establish", of); },
    .accept = [](rdma_cm_id* of, rdma_conn_param*) { return only()->called("accept", of); },
    .reject = [](rdma_cm_id* of, const void*,
                 std::uint8_t) { return only()->called("reject", of); },
    .disconnect = [](rdma_cm_id* of) { return only()->called("disconnect", of); },
    .get_event = get_event,
    .ack_event = ack_event,
};
