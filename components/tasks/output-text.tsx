import { clsx } from 'clsx';
import { withBreaks } from '@/components/ui/line-breaks';
import { type OutputHit, type OutputLine, segmentsOf } from './output-rows';

const NONE: readonly OutputHit[] = [];

/** A line in its colours, with hits marked. */
export function OutputText(props: {
  spans: OutputLine['spans'];
  hits?: readonly OutputHit[];
  current?: OutputHit | null;
}) {
  const { spans, hits = NONE, current = null } = props;
  return (
    <div className="min-h-[18px] whitespace-pre-wrap leading-[18px] [overflow-wrap:anywhere]">
      {segmentsOf(spans, hits).map(({ text, className, hit }, index) =>
        hit === null ? (
          // biome-ignore lint/suspicious/noArrayIndexKey: parts of a line have no other identity
          <span key={index} className={className ?? undefined}>
            {withBreaks(text)}
          </span>
        ) : (
          <mark
            // biome-ignore lint/suspicious/noArrayIndexKey: see above
            key={index}
            className={clsx(className, 'log-hit', hit === current && 'outline-2 outline-accent')}
          >
            {text}
          </mark>
        ),
      )}
    </div>
  );
}
