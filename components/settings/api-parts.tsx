import type { OpenApiDocument } from '@interlude/protocol/open-api';
import { Link } from '@/components/ui/link';

/** The way between the pages of the API’s description. */
export function ApiParts({ document, here }: { document: OpenApiDocument; here?: string }) {
  const parts = [...document.tags.map(({ name }) => name), 'Types'];
  return (
    <nav aria-label="Parts of the API" className="flex flex-wrap gap-x-4 gap-y-1 text-xs">
      {parts.map((name) => (
        <Link
          key={name}
          href={partPath(name)}
          prefetch={false}
          aria-current={name === here ? 'page' : undefined}
          className="text-ink-2 underline decoration-line-strong underline-offset-2 hover:text-ink aria-[current=page]:text-ink aria-[current=page]:no-underline"
        >
          {name}
        </Link>
      ))}
    </nav>
  );
}

export function partPath(name: string): string {
  return `/settings/api/${name.toLowerCase()}`;
}

/** A type has a page of its own: all of them on one would take the server long to write. */
export function typePath(name: string): string {
  return `/settings/api/types/${name}`;
}
