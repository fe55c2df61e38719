import { clsx } from 'clsx';
import { Link } from '@/components/ui/link';
import { Name } from '@/components/ui/name';
import { nameText } from '@/components/ui/verbatim';

/** Another session by its id, where no more of it is at hand. @param anchor what of it is shown */
export function SessionLink(props: { id: string; anchor?: string; className?: string }) {
  const { id, anchor, className } = props;
  return (
    <Link
      href={`/sessions/${encodeURIComponent(id)}${anchor === undefined ? '' : `#${encodeURIComponent(anchor)}`}`}
      // in a frame it would be asked for by the cookie
      prefetch={false}
      title={`Session ${nameText(id)}`}
      className={clsx('wrap-anywhere underline underline-offset-2 hover:text-ink', className)}
    >
      session <Name text={id} most={24} />
    </Link>
  );
}
