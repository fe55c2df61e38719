// @vitest-environment happy-dom
import type { AgentSummary, SessionSummary } from '@interlude/protocol/read-models';
import { type AgentState, noListed, noSessions } from '@interlude/protocol/session-states';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, it, vi } from 'vitest';
import { AgentBoard } from '@/components/agents/agent-board';
import { LiveProvider } from '@/components/live/live-provider';
import { CurrentCounts } from '@/components/live/use-counts';
import { useInitialData } from '@/components/live/use-fleet';
import { NowProvider } from '@/components/ui/clock';
import { NextPage } from '../support/next-page';
import { anAgent, aSession, countsOf } from './rows';
import { scriptedFetch } from './scripted-stream';

afterEach(() => {
  cleanup();
  vi.unstubAllGlobals();
});

function Board(props: { agents: AgentSummary[]; sessions: SessionSummary[]; next: string | null }) {
  const { agents, sessions, next } = props;
  useInitialData((fleet) =>
    fleet.putSessions({ sessions, position: '1', next, hasMore: next !== null, counts: noSessions() }),
  );
  return <AgentBoard initial={{ agents, position: '1', next: null, count: agents.length }} />;
}

function open(agents: AgentSummary[], sessions: SessionSummary[] = [], next: string | null = null) {
  render(
    <NextPage>
      <NowProvider renderedAt={Date.now()}>
        <LiveProvider>
          <CurrentCounts initial={countsOf({ agents })} />
          <Board agents={agents} sessions={sessions} next={next} />
        </LiveProvider>
      </NowProvider>
    </NextPage>,
  );
}

/** An agent with one session in each of these states. */
const anAgentIn = (id: string, ...states: AgentState[]) =>
  anAgent({
    id,
    sessionCount: states.length,
    listedStates: { ...noListed(), ...Object.fromEntries(states.map((state) => [state, 1])) },
  });
const rowOf = (id: string) => document.querySelector(`[data-agent-row="${id}"]`);
const request = { kind: 'permission' as const, tool: 'Bash', line: 'rm -rf build' };

it('shows the age of a late state from when it began', () => {
  vi.stubGlobal('fetch', scriptedFetch().fetch);
  const stateSince = Date.now() - 60_000;
  const late = { stateSince, stateOccurredAt: stateSince - 3 * 86_400_000 };
  open([{ ...anAgentIn('a', 'failed'), stateSince }], [aSession({ agentId: 'a', state: 'failed', ...late })]);
  expect(rowOf('a')?.textContent).toMatch(/Failed\s*for 3 d/);
});

it('sorts by every column, shown or not', () => {
  vi.stubGlobal('fetch', scriptedFetch().fetch);
  const agents = [anAgent({ id: 'a', owedCount: 1 }), anAgent({ id: 'b', owedCount: 3 }), anAgent({ id: 'c' })];
  open(agents);
  const names = () => screen.getAllByRole('link').map(({ textContent }) => textContent);
  const sorts = screen.getByRole('combobox', { name: 'Sort by' });
  expect([...sorts.querySelectorAll('option')]).toHaveLength(10);
  fireEvent.change(sorts, { target: { value: 'owed' } });
  expect(names()).toEqual(['b', 'a', 'c']);
  fireEvent.click(screen.getByRole('button', { name: 'Descending: reverse order' }));
  expect(names()).toEqual(['c', 'a', 'b']);
});

it('shows the request that an agent waits for, the reason of its failure, or the session that works', () => {
  vi.stubGlobal('fetch', scriptedFetch().fetch);
  open(
    [
      anAgentIn('asks', 'needs-input', 'failed', 'idle'),
      anAgentIn('fails', 'failed'),
      anAgentIn('works', 'working'),
      anAgentIn('rests', 'idle'),
    ],
    [
      aSession({ id: '1', agentId: 'asks', state: 'needs-input', request }),
      aSession({ id: '2', agentId: 'fails', state: 'failed', stateReason: 'No credit', title: 'Pay' }),
      aSession({ id: '3', agentId: 'works', state: 'working', title: 'Build \u202Eit' }),
      aSession({ id: '4', agentId: 'rests', title: 'Done' }),
    ],
  );
  expect(rowOf('asks')?.textContent).toContain('Bash rm -rf build3 sessions: 1 needs input · 1 failed · 1 idle');
  expect(rowOf('asks')?.querySelector('.font-mono')?.textContent).toBe('rm -rf build');
  expect(rowOf('fails')?.textContent).toContain('No credit · Pay');
  expect(rowOf('works')?.textContent).toContain('Build ⟨RLO⟩it');
  expect(rowOf('rests')?.textContent).not.toContain('Done');
});

it('shows failed sessions first after the state, at every width', () => {
  vi.stubGlobal('fetch', scriptedFetch().fetch);
  open([anAgentIn('mixed', 'needs-input', 'failed', 'working')]);
  expect(rowOf('mixed')?.textContent).toMatch(
    /Needs inputfor [^–]*1 failed.*3 sessions: 1 needs input · 1 failed · 1 working$/,
  );
  expect(screen.getByText('1 failed').closest('[class*=hidden]')).toBeNull();
});

it('marks an agent without progress by a glyph of its own, and says what is ending', () => {
  vi.stubGlobal('fetch', scriptedFetch().fetch);
  const stalled = { rule: 16, source: 'turn', observedAt: 1_000, note: 'no-progress' } as const;
  open(
    [anAgentIn('stuck', 'working'), anAgentIn('works', 'working'), anAgentIn('ends', 'working', 'idle')],
    [
      aSession({ id: '1', agentId: 'stuck', state: 'working', evidence: stalled, isEnding: true }),
      aSession({ id: '2', agentId: 'works', state: 'working' }),
      aSession({ id: '3', agentId: 'ends', state: 'working' }),
      aSession({ id: '4', agentId: 'ends', isEnding: true }),
    ],
  );
  const shape = (id: string) => rowOf(id)?.querySelector('svg')?.innerHTML;
  expect(rowOf('stuck')?.textContent).toMatch(/Working, no progress.*ending/);
  expect([shape('stuck') === shape('works'), shape('ends') === shape('works')]).toEqual([false, true]);
  expect(rowOf('ends')?.textContent).toContain('1 ending');
  expect(rowOf('works')?.textContent).not.toContain('ending');
});
