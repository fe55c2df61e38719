import type { RetentionRules, Storage } from '@interlude/protocol/storage';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { renderToStaticMarkup } from 'react-dom/server';
import { expect, it } from 'vitest';
import { RetentionTable, retentionRows } from '@/components/settings/storage';
import { logRetention } from '@/lib/server/log-store/remove-old-lines';
import { historyRetention } from '@/lib/server/retention/retention-settings';
import { retentionRules } from '@/lib/server/server-parts';

const MIB = 1024 * 1024;

const rulesOf = (env: Record<string, string>) =>
  retentionRules({ logs: logRetention(env), history: historyRetention(env) });
const wordsOf = (env: Record<string, string>) =>
  retentionRows(rulesOf(env)).map(({ setting, name, about, limit }) => [setting, name, about, limit]);
const byDefault = wordsOf({});

it('shows each limit with its setting', () => {
  expect(byDefault.map(([setting, name, , kept]) => [setting, name, kept])).toEqual([
    ['INTERLUDE_RETENTION_DAYS', 'Turns', '90 days'],
    ['INTERLUDE_RETENTION_MIB', 'Everything except logs', 'any size'],
    ['INTERLUDE_LOG_RETENTION_DAYS', 'Log lines', '14 days'],
    ['INTERLUDE_LOG_RETENTION_MIB', 'Each agent’s log', '256 MiB'],
    ['INTERLUDE_AUDIT_RETENTION_DAYS', 'Audit', '400 days'],
  ]);
});

it('shows limits by session state in their own rows', () => {
  const some = wordsOf({ INTERLUDE_RETENTION_DAYS_BY_STATE: 'exited=30, complete=30, needs-input=forever, idle=1' });
  expect(some.filter(([setting]) => setting === 'INTERLUDE_RETENTION_DAYS_BY_STATE')).toEqual([
    [expect.anything(), 'Turns, by session state', 'sessions in state: needs input', 'forever'],
    [expect.anything(), 'Turns, by session state', 'sessions in state: idle', '1 day'],
    [expect.anything(), 'Turns, by session state', 'sessions in state: complete, exited', '30 days'],
  ]);
});

it('shows missing limits as forever', () => {
  const all = wordsOf({ INTERLUDE_RETENTION_DAYS: 'forever', INTERLUDE_AUDIT_RETENTION_DAYS: 'forever' });
  expect(all.map(([, name, , kept]) => `${name}: ${kept}`)).toEqual(
    expect.arrayContaining(['Turns: forever', 'Audit: forever']),
  );
  expect(JSON.parse(JSON.stringify(rulesOf({ INTERLUDE_RETENTION_DAYS: 'forever' })))).toMatchObject({
    days: { exited: null },
    maxBytes: null,
  });
});

const sizes = { at: 1, bytes: 300 * MIB, freeBytes: 44 * MIB, method: 'measured', parts: [] } as const;
const textOf = (rules: RetentionRules, isKnown = true) => {
  const initial: Storage | null = isKnown ? { ...sizes, parts: [], retention: rules } : null;
  return renderToStaticMarkup(
    <QueryClientProvider client={new QueryClient()}>
      <RetentionTable rules={rules} initial={initial} />
    </QueryClientProvider>,
  ).replace(/<[^>]*>/g, '');
};

it('shows the used share of a size limit once known', () => {
  const limited = rulesOf({ INTERLUDE_RETENTION_MIB: '512' });
  expect(textOf(limited)).toMatch(/256 MiB of 512 MiB in use50 %.*Everything except logs.*512 MiB/);
  expect(textOf(limited, false)).not.toContain('in use');
  expect(textOf(limited, false)).toContain('INTERLUDE_RETENTION_MIB');
  expect(textOf(rulesOf({}))).not.toContain('in use');
});
