import { renderToString } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import { TaskCard } from '@/components/tasks/task-card';
import { namedTask } from '@/components/tasks/task-words';
import { firstPaintOf } from '@/components/transcript/first-paint';
import { Transcript } from '@/components/transcript/transcript';
import { type TranscriptSlots, TranscriptSlotsProvider } from '@/components/transcript/transcript-slots';
import { EMPTY_TRANSCRIPT } from '@/lib/projections/transcript';
import type { Item, Turn } from '@/lib/protocol/read-models';
import { cpuMs } from '../support/cpu-time';
import { hostileTexts } from '../support/hostile-texts';
import { expectWithin } from '../support/pace';
import { aMessage, aTask, aTaskMoment, aTurn } from './rows';

/** Some thirty milliseconds at most; without bounds, minutes. */
const MOST_MS = 1_000;

const slots: TranscriptSlots = {
  findTask: ({ id }) => namedTask(aTask({ id, description: id })),
  outcomeOf: () => 'running',
  tellingSummary: () => null,
  anchorOf: ({ position }) => `task-${position}`,
  hasCard: () => true,
  renderTask: (item, call) => (
    <TaskCard
      task={namedTask(aTask({ id: item.id, description: item.id, position: item.position }))}
      call={call}
      renderItems={() => null}
    />
  ),
  renderRequest: () => null,
  renderDelivery: () => null,
  renderOwed: () => null,
  quoteOf: () => null,
  hrefOf: () => null,
  replyTo: null,
};

function render(turns: Turn[]): string {
  return renderToString(
    <TranscriptSlotsProvider value={slots}>
      <Transcript
        state={{ ...EMPTY_TRANSCRIPT, turns }}
        nonce={undefined}
        loadOlder={async () => false}
        loadingOlder={false}
        olderError={null}
        seek={async () => 'missing'}
      />
    </TranscriptSlotsProvider>,
  );
}

const aTurnOf = (id: string, items: Item[]) => aTurn({ id, position: id.replace(/\D/g, '') || '1', items });

describe('what the server renders of a transcript', () => {
  it('takes a bounded time, whatever was said in it', () => {
    for (const { name, text } of hostileTexts(20_000)) {
      const short = text.slice(0, 3_900);
      const turns = Array.from({ length: 30 }, (_, at) =>
        aTurnOf(`r${at}`, [
          aMessage({ id: `q${at}`, position: `${at}1`, role: 'user', text }),
          aMessage({ id: `a${at}`, position: `${at}2`, text: `${short}${at}` }),
          aMessage({ id: `b${at}`, position: `${at}3`, text }),
        ]),
      );
      const took = cpuMs(() => render(turns));
      expectWithin(took, MOST_MS, name);
    }
  });

  it('is a bounded part of a turn of two thousand things', () => {
    const tasks = Array.from({ length: 2_000 }, (_, at) => aTaskMoment({ id: `t${at}`, position: `${at + 10}` }));
    const markup = render([aTurnOf('r1', tasks)]);
    expect(markup.match(/role="group"/g)?.length).toBeLessThan(100);
    expect(markup).toMatch(/… and (?:<!-- -->)?1,9\d\d(?:<!-- -->)? more/);
    expect(markup.length).toBeLessThan(300_000);
  });

  it('is the end of a transcript, whole where it is of the usual size', () => {
    const usual = Array.from({ length: 30 }, (_, at) =>
      aTurnOf(`r${at}`, [
        aMessage({ id: `q${at}`, role: 'user', text: 'And now?' }),
        aMessage({ id: `a${at}`, text: '**Done.** '.repeat(50) }),
      ]),
    );
    expect(firstPaintOf(usual).turns).toHaveLength(30);
    expect(render(usual)).toContain('<strong');
    const great = usual.map((turn, at) => ({
      ...turn,
      items: [aMessage({ id: `g${at}`, text: 'x'.repeat(100_000) })],
    }));
    const { turns } = firstPaintOf(great);
    expect(turns.at(-1)?.id).toBe('r29');
    expect(turns.length).toBeLessThan(10);
  });
});
