import { EmbedFleet } from './embed-fleet';

export default function EmbedFleetPage() {
  return <EmbedFleet />;
}
