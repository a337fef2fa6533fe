// SPDX-License-Identifier: BSL-1.0
#pragma once

/// Everything of verbena but the optional parts; see docs/ for what is where.
#include <verbena/cm/listener.hpp>
#include <verbena/connection/connection.hpp>
#include <verbena/connection/device.hpp>
#include <verbena/connection/endpoint.hpp>
#include <verbena/connection/receive_ring.hpp>
#include <verbena/diagnose/explain.hpp>
#include <verbena/memory/buffer.hpp>
#include <verbena/memory/descriptor.hpp>
#include <verbena/policy/accounting/unchecked.hpp>
#include <verbena/policy/completion/event_driven.hpp>
#include <verbena/policy/completion/spin_then_wait.hpp>
#include <verbena/policy/errors/handled_by.hpp>
#include <verbena/policy/errors/returning.hpp>
#include <verbena/policy/errors/terminating.hpp>
#include <verbena/policy/posting/builder.hpp>
#include <verbena/policy/setup/cm.hpp>
#include <verbena/policy/signaling/one_in.hpp>
#include <verbena/policy/signaling/per_operation.hpp>
#include <verbena/policy/threading/shared.hpp>
#include <verbena/policy/transport/uc.hpp>
#include <verbena/policy/transport/ud.hpp>
#include <verbena/version.hpp>
