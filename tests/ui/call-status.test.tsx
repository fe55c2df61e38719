import type { RequestItem, ToolCallItem } from '@interlude/protocol/read-models';
import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import { DetachedRequests } from '@/components/transcript/call-state';
import { ItemList } from '@/components/transcript/item-list';
import { NowProvider } from '@/components/ui/clock';
import { LivenessProvider } from '@/components/ui/liveness';
import { aCall, aRequest, aTurn } from './rows';

const NOW = 100_000;

/** The line of a call whose turn also contains its requests. */
function line(
  call: Partial<ToolCallItem>,
  request: Partial<RequestItem> | null,
  stopped: { at: number; why: string } | null = null,
): string {
  const items = [aCall({ result: null, status: 'running', endedAt: null, ...call })];
  const asked = request === null ? [] : [aRequest({ toolCallId: 'c1', ...request })];
  return renderToStaticMarkup(
    <NowProvider renderedAt={NOW}>
      <LivenessProvider stoppedAt={stopped?.at ?? null} lastSignalAt={null} why={stopped?.why ?? ''} isAway={false}>
        <ItemList
          items={[...items, ...asked]}
          endedAt={null}
          renderTask={() => null}
          renderRequest={() => null}
          startedBy={() => null}
        />
      </LivenessProvider>
    </NowProvider>,
  );
}

const moves = /animate-|<time/;
const failed = { status: 'failed', result: 'The user doesn’t want to proceed', endedAt: 90_000 } as const;

describe('a call’s line', () => {
  it('shows a clock and a spinner while the call runs', () => {
    expect(line({}, null)).toMatch(/<time.*animate-turn.*running/);
    expect(line({}, { toolCallId: 'another', outcome: null })).toMatch(/animate-turn/);
  });

  it('shows neither spinner nor clock while waiting for permission', () => {
    const markup = line({}, { outcome: null });
    expect(markup).not.toMatch(moves);
    expect(markup).toContain('waiting for you');
    expect(markup).not.toContain('running');
  });

  it.each([
    ['denied', 'denied'],
    ['expired', 'expired'],
    ['cancelled', 'withdrawn'],
  ] as const)('that was %s says so, whether or not it has a result', (outcome, word) => {
    for (const call of [{}, failed]) {
      const markup = line(call, { outcome, resolvedAt: 90_000 });
      expect(markup).not.toMatch(moves);
      expect(markup).toContain(`>${word}<`);
      expect(markup).not.toMatch(/failed|running/);
    }
  });

  it('matches a request without a call id by tool name and input', () => {
    const call = { name: 'Bash', args: { command: 'ls', env: [1] }, argsText: '{"command":"ls","env":[1]}' };
    const request = { toolCallId: null, toolName: 'Bash', outcome: null };
    expect(line(call, { ...request, input: { env: [1], command: 'ls' } })).toContain('waiting for you');
    expect(line(call, { ...request, input: { env: [2], command: 'ls' } })).toContain('running');
    expect(line({ ...call, name: 'Read' }, { ...request, input: call.args })).toContain('running');
    expect(line({ ...call, status: 'completed' }, { ...request, input: call.args })).not.toContain('waiting for you');
  });

  it('uses the last of several requests', () => {
    const items = [
      aRequest({ id: 'a', toolCallId: 'c1', outcome: 'denied' }),
      aRequest({ id: 'b', toolCallId: 'c1', outcome: 'allowed' }),
    ];
    const markup = renderToStaticMarkup(
      <ItemList
        items={[aCall({ status: 'failed' }), ...items]}
        endedAt={null}
        renderTask={() => null}
        renderRequest={() => null}
        startedBy={() => null}
      />,
    );
    expect(markup).toContain('failed');
    expect(markup).not.toContain('denied');
  });

  it('does not mark a completed call as withdrawn', () => {
    expect(line({ status: 'completed', result: 'ok', endedAt: 90_000 }, { outcome: 'cancelled' })).toContain(
      'completed',
    );
  });

  it('stops waiting when the time limit has passed, even before that is reported', () => {
    expect(line({}, { outcome: null, expiresAt: NOW + 1 })).toContain('waiting for you');
    const markup = line({}, { outcome: null, expiresAt: NOW });
    expect(markup).not.toMatch(moves);
    expect(markup).toContain('expired');
  });

  it('counts from the time it was allowed', () => {
    const took = line(
      { at: 1_000, status: 'completed', result: 'ok', endedAt: 92_000 },
      {
        outcome: 'allowed',
        resolvedAt: 90_000,
      },
    );
    expect(took).toContain('2.0 s');
    expect(line({ at: 1_000 }, { outcome: 'allowed', resolvedAt: 90_000 })).toContain('10 s');
  });

  it('does not claim to wait for anyone when the runner is gone', () => {
    const markup = line({}, { outcome: null }, { at: 50_000, why: 'Runner gone' });
    expect(markup).not.toMatch(/animate-|waiting for you/);
    expect(markup).toContain('Runner gone');
  });

  it('has neither spinner nor clock while it waits for a request in another turn or of its subagent', () => {
    const call = aCall({ result: null, status: 'running', endedAt: null });
    const asked = aTurn({ id: 'none:2', kind: 'none', items: [aRequest({ toolCallId: 'c1', outcome: null })] });
    const markup = renderToStaticMarkup(
      <NowProvider renderedAt={NOW}>
        <DetachedRequests turns={[aTurn({ items: [call] }), asked]}>
          <ItemList
            items={[call]}
            endedAt={null}
            renderTask={() => null}
            renderRequest={() => null}
            startedBy={() => null}
          />
        </DetachedRequests>
      </NowProvider>,
    );
    expect(markup).not.toMatch(moves);
    expect(markup).toContain('waiting for you');
  });
});
