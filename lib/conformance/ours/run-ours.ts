import { join } from 'node:path';
import { claimOutbox } from '@interlude/runner/host/claim-outbox';
import { RunnerHost } from '@interlude/runner/host/runner-host';
import { Redactor } from '@interlude/runner/logger/redactor';
import type { Endpoint } from '@interlude/runner/server-request';
import { TrivialSource } from './trivial-source';

/** Our own runner, as the one that is checked. */
export interface OursOptions {
  url: string;
  token: string | undefined;
  dataDir: string;
  /** The command line of the agent. */
  agent: string;
  env: Record<string, string | undefined>;
  /** Resolves when it is to end. */
  ends: AbortSignal;
}

const NAME = 'conformance-ours';
const END_WITHIN_MS = 1_000;

/** Resolves at its end. @returns why it can't go on; null if it was asked to end */
export async function runOurs({ url, token, dataDir, agent, env, ends }: OursOptions): Promise<string | null> {
  const redactor = new Redactor();
  redactor.learn(token);
  const endpoint: Endpoint = async () => ({ url, token });
  const host = await RunnerHost.open({
    about: { kind: 'trivial', source: 'conformance' },
    journal: 'trivial',
    meanwhile: 'the agent goes on',
    ...{ endpoint, dataDir, redactor },
    level: undefined,
    openOutbox: (listeners) =>
      claimOutbox({
        folder: join(dataDir, 'outboxes'),
        serverKey: url,
        ...{ agentId: NAME, baseId: NAME },
        carries: async () => true,
        listeners,
      }),
  });
  const sessionId = `${NAME}-session`;
  await host.start((surroundings) => new TrivialSource({ surroundings, sessionId, agent, env }));
  const over = AbortSignal.any([ends, host.over]);
  if (!over.aborted) await new Promise((resolve) => over.addEventListener('abort', resolve, { once: true }));
  await host.close(END_WITHIN_MS, END_WITHIN_MS);
  return host.over.aborted ? String(host.over.reason) : null;
}
