import type { AgentSummary } from '@interlude/protocol/read-models';
import { renderToStaticMarkup } from 'react-dom/server';
import { expect, test } from 'vitest';
import { AwayNote } from '@/components/sessions/away-note';
import { CommandSettingProvider } from '@/components/sessions/command-setting';
import { describeState, marksOf } from '@/components/sessions/session-labels';
import { SessionRow } from '@/components/sessions/session-row';
import { NowProvider } from '@/components/ui/clock';
import { LivenessProvider } from '@/components/ui/liveness';
import { aSession } from './rows';

const away = { since: 1_000, lastHeardAt: 1_000, agentGoesOn: false };

/** The command as shown. */
function commandFor(
  agent: Partial<AgentSummary>,
  id = 'session-1',
  agentGoesOn = false,
  setting = '',
): string | undefined {
  const session = aSession({ id, away: { ...away, agentGoesOn } });
  const markup = renderToStaticMarkup(
    <NowProvider renderedAt={63_000}>
      <LivenessProvider stoppedAt={null} lastSignalAt={null} why="" isAway={false}>
        <CommandSettingProvider setting={setting}>
          <AwayNote
            session={session}
            agent={{ id: 'shop@vm', kind: 'claude', status: null, ...agent } as AgentSummary}
          />
        </CommandSettingProvider>
      </LivenessProvider>
    </NowProvider>,
  );
  expect(markup.includes('in Interlude’s folder:')).toBe(markup.includes('<code'));
  return /<code[^>]*>(.*?)<\/code>/
    .exec(markup)?.[1]
    ?.replaceAll(/<[^>]*>/g, '')
    .replaceAll('&#x27;', "'");
}

test('the command resumes a session with its agent in its folder', () => {
  expect(commandFor({ status: { cwd: "/home/me/it's mine" } })).toBe(
    `npx interlude runner claude --agent shop@vm --cwd '/home/me/it'\\''s mine' --resume session-1`,
  );
  expect(commandFor({})).toBe('npx interlude runner claude --agent shop@vm --resume session-1');
});

test('the command for hooks restarts their runner', () => {
  expect(commandFor({ kind: 'hooks' }, 'session-1', true)).toBe('npx interlude runner hooks');
});

test.each(['opencode', 'agentapi', 'agui', 'codex'])('%s gets no advice meant for hooks', (kind) => {
  expect(commandFor({ kind }, 'session-1', true)).toBeUndefined();
});

test('the command names the server', () => {
  const setting = 'INTERLUDE_DATA_DIR=/srv/kept ';
  expect(commandFor({ kind: 'hooks' }, 'session-1', true, setting)).toBe(`${setting}npx interlude runner hooks`);
  expect(commandFor({}, 'session-1', false, setting)).toBe(
    `${setting}npx interlude runner claude --agent shop@vm --resume session-1`,
  );
});

test.each([
  ['an agent of another kind', { kind: 'acp' }, 'session-1'],
  ['a session that is an option', {}, '--help'],
  ['an agent that is an option', { id: '-x' }, 'session-1'],
  ['a folder that moves the cursor', { status: { cwd: '/tmp/\u001b[2K' } }, 'session-1'],
  ['a folder that breaks the line', { status: { cwd: '/tmp/\nrm' } }, 'session-1'],
])('shows no command for %s', (_what, agent, id) => {
  expect(commandFor(agent, id)).toBeUndefined();
});

test('shows since when and why an agent is unreachable, as text', () => {
  const outage = { ...away, isUnreachable: true as const, reason: 'no answer at http://h/a_b_c: ECONNREFUSED' };
  const evidence = { rule: 3, source: 'connection', observedAt: 1_000, last: 'working' } as const;
  const session = aSession({ state: 'unknown', away: outage, evidence });
  const markup = renderToStaticMarkup(
    <NowProvider renderedAt={63_000}>
      <LivenessProvider stoppedAt={null} lastSignalAt={null} why="" isAway={false}>
        <CommandSettingProvider setting="">
          <AwayNote session={session} agent={null} />
        </CommandSettingProvider>
      </LivenessProvider>
    </NowProvider>,
  );
  const text = markup.replaceAll(/<[^>]*>/g, '');
  expect(text).toContain('Agent unreachable since ');
  expect(text).toContain(
    '“no answer at http://h/a_b_c: ECONNREFUSED”. Running turns and tasks were closed. Restart the agent',
  );
  expect(describeState(session)).toBe('Unreachable (last: working)');
  const row = renderToStaticMarkup(<SessionRow session={session} current={false} />).replaceAll(/<[^>]*>/g, '');
  expect(row).toContain('Unreachable since ');
  expect(marksOf(session)).toContainEqual({ kind: 'unreachable', text: 'Unreachable', since: 1_000 });
});
