import { AcpAdapter } from '@interlude/runner/adapters/acp/acp-adapter';
import type { EmittedEvent } from '@interlude/runner/adapters/wire';
import { eventLines, expectValidEvents } from './recordings';

/** Builds an agent's frames, a millisecond apart. */
export function acpFrames(name = 'some-agent', introduction: object = {}) {
  let runs = 0;
  let now = 0;
  const adapter = new AcpAdapter({ sessionOf: () => 's', newRunId: () => `r${++runs}` });
  const emitted: EmittedEvent[] = [];
  const pass = (dir: 'in' | 'out', msg: object) => {
    now += 1;
    emitted.push(...adapter.read({ dir, msg: { jsonrpc: '2.0', ...msg } }, now));
  };
  const ids = new Map<string, number>();
  const update = (given: object) => pass('in', { method: 'session/update', params: { sessionId: 'n', update: given } });
  pass('out', { id: 1, method: 'initialize', params: {} });
  pass('in', { id: 1, result: { agentInfo: { name, version: '1' }, ...introduction } });
  pass('out', { id: 2, method: 'session/new', params: {} });
  pass('in', {
    id: 2,
    result: {
      sessionId: 'n',
      modes: {
        currentModeId: 'a',
        availableModes: [
          { id: 'a', name: 'Ask' },
          { id: 'b', name: 'Do' },
        ],
      },
    },
  });
  return {
    adapter,
    told: emitted,
    pass,
    update,
    prompt(text: string) {
      ids.set(text, ids.size + 10);
      const _meta = { interlude: { messageIds: [text] } };
      pass('out', { id: ids.get(text), method: 'session/prompt', params: { sessionId: 'n', prompt: [], _meta } });
    },
    answer: (text: string, stopReason = 'end_turn') => pass('in', { id: ids.get(text), result: { stopReason } }),
    fail: (text: string, error: object) => pass('in', { id: ids.get(text), error }),
    say: (text: string, messageId?: string) =>
      update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text }, messageId }),
    call: (toolCallId: string, more: object) => update({ sessionUpdate: 'tool_call_update', toolCallId, ...more }),
    /** Events triggered by time alone. */
    waits(ms: number) {
      now += ms;
      emitted.push(...adapter.elapsed(now));
    },
    lines: () => eventLines(emitted).trimEnd().split('\n'),
    turns: () =>
      eventLines(emitted)
        .split('\n')
        .filter((line) => /^(RUN_|TEXT_MESSAGE_CONTENT)/.test(line))
        .map((line) =>
          line.replace(/^(\w+) .*?"(user|between-run)".*$/, '$1 $2').replace(/^TEXT_MESSAGE_CONTENT \S+ /, ''),
        ),
    ends() {
      emitted.push(...adapter.ended({ reason: 'exited' }, now + 1));
      expectValidEvents(emitted);
    },
  };
}
