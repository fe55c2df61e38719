import { ArrowDown } from 'lucide';
import { Icon } from '@/components/ui/icon';

/** The way back to the end, and how much has come there meanwhile. */
export function JumpToLatest({ count, onJump }: { count: number; onJump: () => void }) {
  return (
    <button
      type="button"
      onClick={onJump}
      className="-translate-x-1/2 absolute bottom-4 left-1/2 flex items-center gap-1.5 whitespace-nowrap rounded-full bg-ink px-3 py-1 text-ground text-xs shadow-lg hover:bg-ink-2"
    >
      <Icon of={ArrowDown} size={13} />
      <span className="tabular">{count > 0 ? `${count} new` : 'Jump to latest'}</span>
      {count > 0 && <span className="sr-only">, jump to latest</span>}
    </button>
  );
}
