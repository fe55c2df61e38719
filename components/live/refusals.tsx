'use client';

import { type Refusal, refusalOf } from '@interlude/protocol/agent-status-view';
import type { CommandType } from '@interlude/protocol/commands';
import { createContext, type ReactNode, useContext, useMemo } from 'react';

/** The status of the shown agent's runner, which lists the commands it supports. */
const StatusContext = createContext<Record<string, unknown> | null>(null);

export function RefusalsProvider(props: { status: Record<string, unknown> | null; children: ReactNode }) {
  return <StatusContext value={props.status}>{props.children}</StatusContext>;
}

export function useRunnerStatus(): Record<string, unknown> | null {
  return useContext(StatusContext);
}

/** True if the runner lists the command. A runner that doesn't list it may be older than the command. */
export function useSupportsCommand(type: CommandType): boolean {
  const takes = useContext(StatusContext)?.takes;
  return Array.isArray(takes) && takes.includes(type);
}

/**
 * Reason the agent would refuse the command; null if it accepts the command as far as known. Refused commands have no
 * button.
 */
export function useRefusal(type: CommandType): Refusal | null {
  const status = useContext(StatusContext);
  return useMemo(() => refusalOf(status, type), [status, type]);
}
