'use client';

import type { CommandResponse, RetireResponse } from '@interlude/protocol/commands';
import type { InboxList, InboxMarked } from '@interlude/protocol/inbox';
import type { AgentSummary, SessionList, SessionSummary } from '@interlude/protocol/read-models';
import { SESSION_STATES, type SessionState } from '@interlude/protocol/session-states';
import { clsx } from 'clsx';
import { useState } from 'react';
import { useMayAct } from '@/components/access/may-act';
import { fetchJson, postJson, putJson } from '@/components/live/fetch-json';
import { forEachLimited } from '@/components/live/for-each-limited';
import { IdempotentPost } from '@/components/live/idempotent-post';
import { asShown, changedText } from '@/components/live/mark-items';
import { BulkLevel } from '@/components/logs/bulk-level';
import { sessionTitle } from '@/components/sessions/session-labels';
import { ConfirmButton } from '@/components/ui/confirm-button';
import { plural } from '@/components/ui/duration';
import { Name, Phrase } from '@/components/ui/name';
import { quoted } from '@/components/ui/verbatim';

export const QUIET = 'min-h-6 text-ink-2 underline decoration-line-strong underline-offset-2 hover:text-ink';
const LOOKS = [QUIET, 'min-h-6 font-medium text-failed underline underline-offset-2 aria-disabled:text-ink-3'] as const;

export const BAR = '-mx-2 px-2 border-line-strong border-t bg-ground py-3';

/** Actions on all selected agents, with the outcome for each. */
export function SelectionBar(props: {
  agents: readonly AgentSummary[];
  total: number;
  onAll: () => void;
  onNone: () => void;
}) {
  const { agents, total, onAll, onNone } = props;
  const mayAct = useMayAct();
  const { state, isBusy, run, retry } = useEachAgent();
  const of = agents.map(({ id }) => id).join('\n');
  const [inTurn, open] = [sumOf(agents, inTurnCount), sumOf(agents, openCount)];
  const [setsLevel, setSetsLevel] = useState(false);
  const canRetire = agents.some(({ retiredAt }) => retiredAt === null);
  const start = (what: string, job: AgentJob) => run(what, agents, job);
  return (
    <section aria-label="Selected agents" className={BAR}>
      <div className="flex flex-wrap items-center gap-x-5 gap-y-2 text-xs">
        <span className="tabular font-medium">{agents.length} selected</span>
        {agents.length < total && (
          <button type="button" onClick={onAll} className={QUIET}>
            All {total}
          </button>
        )}
        <button type="button" onClick={onNone} className={QUIET}>
          None
        </button>
        {mayAct ? (
          <>
            <ConfirmButton
              of={`interrupt ${of}`}
              disabled={isBusy || inTurn === 0}
              onPress={() => start('Interrupt', interruptAll)}
              looks={LOOKS}
            >
              {(isPressed) =>
                isPressed
                  ? `Press again to interrupt ${plural(inTurn, 'session')}`
                  : inTurn > 0
                    ? 'Interrupt turns'
                    : 'Interrupt turns: none open'
              }
            </ConfirmButton>
            {open > 0 && (
              <ConfirmButton
                of={`end ${of}`}
                disabled={isBusy}
                onPress={() => start('End sessions', endAll)}
                looks={LOOKS}
              >
                {(isPressed) => (isPressed ? `Press again to end ${plural(open, 'session')}` : 'End sessions')}
              </ConfirmButton>
            )}
            <ConfirmButton
              of={`seen ${of}`}
              disabled={isBusy}
              onPress={() => start('Mark seen', markSeen)}
              looks={LOOKS}
            >
              {(isPressed) =>
                isPressed ? `Press again to mark items of ${plural(agents.length, 'agent')} seen` : 'Mark seen'
              }
            </ConfirmButton>
            {canRetire ? (
              <ConfirmButton
                of={`retire ${of}`}
                disabled={isBusy}
                onPress={() => start('Retire', retire)}
                looks={LOOKS}
              >
                {(isPressed) => (isPressed ? `Press again to retire ${plural(agents.length, 'agent')}` : 'Retire')}
              </ConfirmButton>
            ) : (
              <button type="button" disabled={isBusy} onClick={() => start('Unretire', unretire)} className={QUIET}>
                Unretire
              </button>
            )}
            <button
              type="button"
              aria-expanded={setsLevel}
              onClick={() => setSetsLevel(!setsLevel)}
              className={clsx(QUIET, 'sm:hidden')}
            >
              Log level…
            </button>
          </>
        ) : (
          <span className="text-ink-2">You can view agents, but not change them.</span>
        )}
      </div>
      {mayAct && (
        <div className={clsx('mt-2', !setsLevel && 'max-sm:hidden')}>
          <BulkLevel agents={agents} />
        </div>
      )}
      {state !== null && <Outcomes {...state} isBusy={isBusy} onRetry={retry} />}
    </section>
  );
}

/** Progress of an action, and the outcome for each agent: failures first. */
export function Outcomes(props: {
  what: string;
  outcomes: ReadonlyMap<string, Outcome | null>;
  isBusy: boolean;
  onRetry: () => void;
}) {
  const { what, outcomes, isBusy, onRetry } = props;
  const all = [...outcomes];
  const done = all.filter(([, outcome]) => outcome !== null).length;
  const failed = all.filter(([, outcome]) => outcome?.hasFailed === true);
  const ordered = [...failed, ...all.filter(([, outcome]) => outcome?.hasFailed !== true)];
  return (
    <>
      <p className="mt-2 flex flex-wrap items-center gap-x-3 text-xs">
        <span role="status" className="tabular">
          {what}: {done} of {plural(all.length, 'agent')} done
          {failed.length > 0 && <span className="text-failed">, {failed.length} failed</span>}
        </span>
        <progress aria-hidden="true" value={done} max={all.length} className="h-1 w-24 accent-ink" />
        {failed.length > 0 && (
          <button type="button" disabled={isBusy} onClick={onRetry} className={QUIET}>
            Retry failed
          </button>
        )}
      </p>
      <ul aria-label={`${what}: results`} className="mt-1 max-h-32 overflow-y-auto text-xs">
        {ordered.map(([id, outcome]) => (
          <li key={id} className="flex gap-x-3 py-0.5">
            <span className="w-40 shrink-0 truncate font-medium">
              <Name text={id} />
            </span>
            <span className={outcome?.hasFailed ? 'text-failed' : 'text-ink-2'}>
              {outcome === null ? 'waiting' : <Phrase text={outcome.words} max={400} />}
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}

/** The outcome for one agent, in words. */
interface Outcome {
  words: string;
  hasFailed: boolean;
}

/** An action on one agent. @returns the outcome in words. @throws an error whose message describes the failure */
export type AgentJob = (agent: AgentSummary) => Promise<string>;

/** Runs an action for several agents, and keeps the outcome for each. */
export function useEachAgent() {
  const [state, setState] = useState<Doing | null>(null);
  const run = async (what: string, agents: readonly AgentSummary[], job: AgentJob) => {
    const outcomes = new Map<string, Outcome | null>(agents.map(({ id }) => [id, null]));
    const publish = () => setState({ what, agents, job, outcomes: new Map(outcomes) });
    publish();
    await forEachLimited(agents, async (agent) => {
      outcomes.set(
        agent.id,
        await job(agent).then(
          (words) => ({ words, hasFailed: false }),
          (error: Error) => ({ words: error.message, hasFailed: true }),
        ),
      );
      publish();
    });
  };
  const isBusy = state !== null && [...state.outcomes.values()].includes(null);
  const retry = () => {
    if (state === null) return;
    const failed = state.agents.filter(({ id }) => state.outcomes.get(id)?.hasFailed === true);
    void run(state.what, failed, state.job);
  };
  const clear = () => setState(null);
  return { state, isBusy, retry, clear, run: (...of: Parameters<typeof run>) => void run(...of) };
}

interface Doing {
  what: string;
  agents: readonly AgentSummary[];
  job: AgentJob;
  /** Null for agents whose turn has not come. */
  outcomes: ReadonlyMap<string, Outcome | null>;
}

const PAGE = 100;
const IN_TURN: readonly SessionState[] = ['needs-input', 'working'];

export const inTurnCount = ({ sessionStates }: AgentSummary) =>
  IN_TURN.reduce((sum, state) => sum + sessionStates[state], 0);
export const openCount = ({ sessionCount, sessionStates }: AgentSummary) => sessionCount - sessionStates.exited;

export function sumOf(agents: readonly AgentSummary[], countOf: (agent: AgentSummary) => number): number {
  return agents.reduce((sum, agent) => sum + countOf(agent), 0);
}

/** Interrupts every open turn of the agent. */
export const interruptAll: AgentJob = async (agent) => {
  const open = (await sessionsOf(agent, IN_TURN)).filter(({ openTurnId }) => openTurnId !== null);
  if (open.length === 0) return 'no open turns';
  return await postEach(open, 'interrupt', 'interrupting', ({ openTurnId }) => ({ turnId: openTurnId }));
};

/** Ends the agent's sessions, with the processes of agent and runner. */
export const endAll: AgentJob = async (agent) => {
  const states = SESSION_STATES.filter((state) => state !== 'exited');
  const open = await sessionsOf(agent, states);
  if (open.length === 0) return 'no open sessions';
  return await postEach(open, 'end', 'ending', () => ({}));
};

async function sessionsOf({ id }: AgentSummary, states: readonly SessionState[]): Promise<SessionSummary[]> {
  const found: SessionSummary[] = [];
  const filter = [['agent', id], ...states.map((state) => ['state', state])];
  for await (const { sessions } of pagesOf<SessionList>('/sessions', filter)) found.push(...sessions);
  return found;
}

/** Maximum titles in a result, and characters of each. */
const NAMED = 5;
const MAX_TITLE = 60;

/**
 * Sends a command to each session.
 *
 * @returns the sessions that accepted it, in words
 * @throws the refusals, before the sessions that accepted it
 */
async function postEach(
  sessions: readonly SessionSummary[],
  command: 'interrupt' | 'end',
  doing: string,
  bodyOf: (session: SessionSummary) => object,
): Promise<string> {
  const refused: string[] = [];
  const sent: string[] = [];
  for (const session of sessions) {
    const path = `/sessions/${encodeURIComponent(session.id)}/${command}`;
    await new IdempotentPost().post<CommandResponse>(path, bodyOf(session)).then(
      () => sent.push(quoted(sessionTitle(session), MAX_TITLE)),
      (error: Error) => refused.push(error.message),
    );
  }
  if (sent.length === 0) throw new Error(refused[0]);
  const more = sent.length > NAMED ? ` and ${sent.length - NAMED} more` : '';
  const done = `${doing} ${plural(sent.length, 'session')}: ${sent.slice(0, NAMED).join(', ')}${more}`;
  if (refused.length > 0) throw new Error(`${refused.length} refused: ${refused[0]}; ${done}`);
  return done;
}

/** Marks the agent's inbox items as seen, except those that wait for an answer. */
export const markSeen: AgentJob = async ({ id }) => {
  let [seen, changedCount] = [0, 0];
  const kinds = SEEN_KINDS.map((kind) => ['kind', kind]);
  for await (const { items } of pagesOf<InboxList>('/inbox', [['agent', id], ...kinds])) {
    const shown = asShown(items.filter(({ seenAt }) => seenAt === null));
    if (shown.length === 0) continue;
    const { changed } = await postJson<InboxMarked>('/inbox/marks', { items: shown, mark: 'seen' });
    changedCount += changed.length;
    seen += shown.length - changed.length;
  }
  const marked = `${seen === 0 ? 'no items' : plural(seen, 'item')} marked as seen`;
  if (changedCount > 0) return `${marked}; ${changedText(changedCount)}`;
  return seen === 0 ? 'nothing new' : marked;
};
const SEEN_KINDS = ['failure', 'lost-contact', 'hook-failure', 'delivery-gap'];

const retire: AgentJob = ({ id }) => setRetired(id, true);
const unretire: AgentJob = ({ id }) => setRetired(id, false);

async function setRetired(id: string, retired: boolean): Promise<string> {
  await putJson<RetireResponse>(`/agents/${encodeURIComponent(id)}/retirement`, { retired });
  return retired ? 'retired' : 'unretired';
}

/** Reads a list page by page to its end. */
async function* pagesOf<Page extends { next: string | null }>(path: string, filter: string[][]): AsyncGenerator<Page> {
  for (let after: string | null = '0'; after !== null; ) {
    const params = new URLSearchParams([...filter, ['after', after], ['limit', String(PAGE)]]);
    const page: Page = await fetchJson<Page>(`${path}?${params}`);
    yield page;
    after = page.next;
  }
}
