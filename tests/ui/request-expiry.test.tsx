import type { RequestItem } from '@interlude/protocol/read-models';
import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import { renderRequest } from '@/app/(console)/render-request';
import { ActionStore, ActionsProvider } from '@/components/live/actions';
import { withExpiry } from '@/components/requests/request-answer';
import { TurnFooter } from '@/components/transcript/turn-article';
import { NowProvider } from '@/components/ui/clock';
import { LivenessProvider } from '@/components/ui/liveness';
import { aRequest, aTurn } from './rows';

const NOW = 100_000;
const at = (node: React.ReactNode) =>
  renderToStaticMarkup(
    <NowProvider renderedAt={NOW}>
      <ActionsProvider store={new ActionStore('s', () => {})}>{node}</ActionsProvider>
    </NowProvider>,
  );
const card = (fields: Partial<RequestItem>) => at(renderRequest(aRequest({ at: 1_000, ...fields })));
const pinned = (fields: Partial<RequestItem>) =>
  at(renderRequest(aRequest({ at: 1_000, ...fields }), { onDismiss: () => {} }));
const question = {
  requestKind: 'question',
  input: { questions: [{ question: 'Which?', options: ['A', 'B'] }] },
} as const;

describe('an expired request', () => {
  it.each([
    ['by its agent’s word', { outcome: 'expired' }],
    ['by time alone', { outcome: null, expiresAt: NOW }],
  ] as const)('offers nothing: %s', (_how, fields) => {
    for (const markup of [card(fields), card({ ...fields, ...question }), pinned(fields)]) {
      expect(markup).not.toMatch(/>Allow|>Deny|>Answer<|<input|<form/);
      expect(markup).not.toMatch(/waiting <time/);
      expect(markup).toMatch(/Expired/);
    }
  });

  it('can be answered until its deadline', () => {
    for (const expiresAt of [null, NOW + 1]) {
      expect(card({ expiresAt })).toMatch(/>Allow/);
      expect(card({ expiresAt })).not.toContain('xpired');
    }
  });

  it('has no deadline while its agent is silent', () => {
    const stopped = { stoppedAt: 1_000, why: 'Silent', isAway: false, lastSignalAt: 1_000 };
    const markup = at(<LivenessProvider {...stopped}>{renderRequest(aRequest({ at: 1_000 }))}</LivenessProvider>);
    expect(markup).toMatch(/waiting <time[^>]*>1 min 39 s/);
  });

  it('shows a pending answer instead of the expiry', () => {
    const answer = { commandId: 'c', behavior: 'allow', state: 'queued', reason: null } as const;
    expect(card({ expiresAt: NOW, answer })).toContain('Allowed. Sending to the agent…');
    expect(card({ expiresAt: NOW, answer: { ...answer, state: 'failed', reason: 'gone' } })).toContain('Expired');
  });

  it('is the same object each time, so it stays pinned', () => {
    const item = aRequest();
    expect(withExpiry(item, true, null)).toMatchObject({ id: item.id, outcome: 'expired' });
    expect(withExpiry(item, true, null)).toBe(withExpiry(item, true, null));
    expect(withExpiry(item, false, null)).toBe(item);
  });

  it('does not keep its turn waiting', () => {
    const turn = (expiresAt: number) =>
      at(<TurnFooter turn={aTurn({ state: 'open', endedAt: null, items: [aRequest({ expiresAt })] })} />);
    expect(turn(NOW + 1)).toContain('Waiting for an answer');
    expect(turn(NOW)).not.toMatch(/Waiting|Working|animate-|<time/);
  });
});
