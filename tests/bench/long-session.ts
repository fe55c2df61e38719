import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { message, reasoning, taskEnded, taskStarted, toolCall, userTurn, wokenTurn } from '../support/turn-events';

/**
 * A very long session: turns with a question, reasoning, calls with output and a markdown answer. Every tenth starts a
 * task whose end wakes the agent. Deterministic.
 */
export function* longSession(turns: number): Generator<AgUiEvent> {
  for (let turn = 0; turn < turns; turn += 1) {
    const id = `turn${turn}`;
    if (turn % 10 === 9) {
      yield taskEnded(`${id}/task`, turn % 20 === 9 ? 'failed' : 'completed', { exit_code: turn % 20 === 9 ? 1 : 0 });
      yield* wokenTurn(id, `${id}/task`, answer(turn));
      continue;
    }
    const work = [
      ...reasoning(`${id}/thought`, WORDS.slice(0, 20 + (turn % 30)).join(' ')),
      ...Array.from({ length: turn % 4 }, (_, at) =>
        toolCall(`${id}/call${at}`, 'Bash', { command: `npm test -- part-${at}` }, OUTPUT),
      ).flat(),
      ...(turn % 10 === 8 ? [taskStarted(`turn${turn + 1}/task`, `Run suite ${turn}`)] : []),
      ...message(`${id}/answer`, answer(turn)),
    ];
    yield* userTurn(id, `Question ${turn}: what about the rollout?`, work);
  }
}

const WORDS = 'the tests pass now but the deploy still waits for its canary to settle before it goes on with the rest '
  .repeat(4)
  .split(' ');
const OUTPUT = Array.from({ length: 30 }, (_, at) => `\u001b[32mok\u001b[0m ${at} - part of the suite`).join('\n');

function answer(turn: number): string {
  const words = WORDS.slice(0, 15 + ((turn * 7) % 60)).join(' ');
  if (turn % 7 === 3) return `${words}\n\n\`\`\`ts\nexport const turn = ${turn};\nconst rest = turn * 2;\n\`\`\`\n`;
  if (turn % 5 === 2) return `**Answer ${turn}.** ${words}\n\n- first\n- \`second\`\n- [third](https://example.org)\n`;
  return `Answer ${turn}. ${words}`;
}
