import { PROTOCOL_VERSION } from '@/lib/protocol/version';
import { RUNNER_VERSION } from '@/lib/runner/version';

/** For the status record: who speaks, what, and for whom. */
export interface Versions {
  runner: string;
  protocol: string;
  /** The agent's own program, by name: `Claude Code 2.1.329`. Missing while it is not known. */
  provider?: string;
}

export function versionsWith(provider: string | null): Versions {
  return { runner: RUNNER_VERSION, protocol: PROTOCOL_VERSION, ...(provider === null ? {} : { provider }) };
}
