import { setTimeout as pause } from 'node:timers/promises';
import { parseJson } from '@interlude/protocol/fields';
import type { AgentDetail, SessionList, SessionSummary } from '@interlude/protocol/read-models';
import { hasEnded } from '@interlude/protocol/session-predicates';
import { type Endpoint, requestServer } from '../../host/server-request';
import { startsWithGreeting } from './assistant';
import { ASSISTANT } from './assistant-script';
import { demoSessionId, FLEET } from './demo-source';

const JSON_BODY = { 'content-type': 'application/json' };
const REQUEST_MS = 5_000;
/** The server notices a disconnect within moments. */
const RETIRE = { attempts: 10, everyMs: 100 };
const AGENTS = [...FLEET.map(({ agentId }) => agentId), ASSISTANT];

/**
 * Archives the demo's ended sessions and retires its agents, so that a stopped demo leaves only what people used. The
 * next turn of a session restores it, and so do the agents' next records.
 *
 * Failure: without the permission of an operator, or without a server, everything stays listed: at most one session per
 * agent.
 */
export class DemoTidier {
  #operator: Endpoint;

  /** @param operator endpoint whose token may be the owner's */
  constructor(operator: Endpoint) {
    this.#operator = operator;
  }

  useToken(token: string): void {
    const operator = this.#operator;
    this.#operator = async () => ({ url: (await operator()).url, token });
  }

  /** Archives sessions that earlier versions left, and restores the one that people can write to. */
  async begin(assistantSessionId: string): Promise<void> {
    const isOurs = ({ id, agentId }: SessionSummary) => id === demoSessionId(agentId) || id === assistantSessionId;
    const mayArrange = await this.#archive((session) => !isOurs(session));
    if (mayArrange) await this.#arrange(assistantSessionId, false);
  }

  /** Call once the runners have closed. */
  async end(): Promise<void> {
    const mayArrange = await this.#archive(() => true);
    if (mayArrange) await Promise.all(AGENTS.map((agentId) => this.#retire(agentId)));
  }

  /** @returns false if the server does not permit it or does not answer */
  async #archive(isIncluded: (session: SessionSummary) => boolean): Promise<boolean> {
    const lists = await Promise.all(
      AGENTS.map(async (agentId) => {
        const answer = await this.#request(`/sessions?agent=${encodeURIComponent(agentId)}`);
        if (answer?.status !== 200) return false;
        for (const session of (answer.body as SessionList).sessions) {
          const isListed = session.arrangement.archivedAt === null;
          const isLeft = isListed && isOfDemo(session) && hasEnded(session) && !isUsed(session);
          if (isLeft && isIncluded(session)) await this.#arrange(session.id, true);
        }
        return true;
      }),
    );
    return lists.every(Boolean);
  }

  async #arrange(sessionId: string, archived: boolean): Promise<void> {
    await this.#request(`/sessions/${encodeURIComponent(sessionId)}/arrangement`, { archived });
  }

  async #retire(agentId: string): Promise<void> {
    const path = `/agents/${encodeURIComponent(agentId)}`;
    const known = await this.#request(path);
    if ((known?.body as AgentDetail | undefined)?.agent?.status?.source !== 'demo') return;
    for (let attempt = 0; attempt < RETIRE.attempts; attempt += 1) {
      const answer = await this.#request(`${path}/retirement`, { retired: true });
      if (answer?.status !== 409) return;
      await pause(RETIRE.everyMs);
    }
  }

  /** Reads, or puts a body. @returns null if the server does not answer */
  async #request(path: string, body?: object) {
    try {
      const response = await requestServer(this.#operator, path, {
        ...(body === undefined ? {} : { method: 'PUT', body: JSON.stringify(body), headers: JSON_BODY }),
        signal: AbortSignal.timeout(REQUEST_MS),
      });
      return { status: response.status, body: parseJson(await response.text()) };
    } catch {
      return null;
    }
  }
}

/** False for sessions of another agent of that name. Earlier versions created one for each recording. */
function isOfDemo({ id, agentId }: SessionSummary): boolean {
  const own = agentId === ASSISTANT ? [agentId, 'ask-away'] : [agentId];
  return own.some((name) => id.startsWith(`${name}-`) && /^(?:demo|[0-9a-f]{8})$/.test(id.slice(name.length + 1)));
}

/** True if a person wrote to the session, pinned or renamed it. */
function isUsed({ id, agentId, turnCount, arrangement }: SessionSummary): boolean {
  const writtenTo = agentId === ASSISTANT && turnCount > (startsWithGreeting(id) ? 1 : 0);
  return writtenTo || arrangement.pinnedAt !== null || arrangement.name !== null;
}
