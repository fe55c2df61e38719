import { EMPTY_TRANSCRIPT } from '@interlude/protocol/projections/transcript';
import type { Turn } from '@interlude/protocol/read-models';
import { renderToString } from 'react-dom/server';
import { TaskCard } from '@/components/tasks/task-card';
import { namedTask } from '@/components/tasks/task-words';
import { Transcript } from '@/components/transcript/transcript';
import { type TranscriptSlots, TranscriptSlotsProvider } from '@/components/transcript/transcript-slots';
import { aTask } from './rows';

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
  renderObligation: () => null,
  quoteOf: () => null,
  hrefOf: () => null,
  linkTo: () => '',
  replyTo: null,
};

/** The markup that the server sends for a transcript. */
export function transcriptMarkup(turns: Turn[]): string {
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
