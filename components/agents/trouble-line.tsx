import { TriangleAlert } from 'lucide';
import { Icon } from '@/components/ui/icon';
import { Words } from '@/components/ui/name';

const MAX_CHARACTERS = 1_000;

/** A problem between an agent and its runner, in the runner's words. */
export function TroubleLine({ trouble }: { trouble: string }) {
  return (
    <p role="status" className="flex items-start gap-2 text-waiting text-xs">
      <Icon of={TriangleAlert} size={13} strokeWidth={1.75} className="mt-[2.5px] shrink-0" />
      <span dir="auto" className="min-w-0 [overflow-wrap:anywhere]">
        <Words text={trouble} max={MAX_CHARACTERS} />
      </span>
    </p>
  );
}

/** The same note above a session's composer. */
export function TroubleNote({ trouble }: { trouble: string }) {
  return (
    <div className="shrink-0 border-waiting border-t bg-waiting-soft">
      <div className="session-column py-2">
        <TroubleLine trouble={trouble} />
      </div>
    </div>
  );
}
