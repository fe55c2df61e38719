'use client';

import { type Refusal, refusalOf } from '@interlude/protocol/agent-limits';
import type { CommandType } from '@interlude/protocol/commands';
import { createContext, type ReactNode, useContext, useMemo } from 'react';

/** What the runner of the agent shown says of the commands it acts on. */
const StatusContext = createContext<Record<string, unknown> | null>(null);

export function RefusalsProvider(props: { status: Record<string, unknown> | null; children: ReactNode }) {
  return <StatusContext value={props.status}>{props.children}</StatusContext>;
}

export function useRunnerStatus(): Record<string, unknown> | null {
  return useContext(StatusContext);
}

/** Whether the runner names the command among those that it acts on: one that names none may be older than it. */
export function useIsTaken(type: CommandType): boolean {
  const takes = useContext(StatusContext)?.takes;
  return Array.isArray(takes) && takes.includes(type);
}

/** Why the agent would refuse such a command: then nothing offers it. Null if it acts on it, as far as is known. */
export function useRefusal(type: CommandType): Refusal | null {
  const status = useContext(StatusContext);
  return useMemo(() => refusalOf(status, type), [status, type]);
}
