import { pageNonce } from '@/app/page-nonce';
import { embedOrigins } from '@/lib/server/access/embeds';
import { EmbedStart } from './embed-start';
import type { EmbedOf } from './embed-view';

/** The server-rendered page of an embed. Contains no data, only the origins allowed to frame it. */
export async function EmbedShell({ of }: { of: EmbedOf }) {
  return (
    <EmbedStart
      of={of}
      origins={embedOrigins(process.env)}
      nonce={await pageNonce()}
      // oxlint-disable-next-line react-compiler/purity -- runs once a request, on the server
      renderedAt={Date.now()}
    />
  );
}
