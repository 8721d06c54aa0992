/** What the faces of a session are made of: one set of parts, so that whatever one face made the others find. */
import type { BrokerParts, Replica } from '../parts.js';
import type { Negotiator } from '../sessions/negotiate.js';
import type { RefreshParts } from '../tokens/refresh.js';
import type { PlaceOf } from './session-shapes.js';

export interface FaceParts {
  readonly broker: BrokerParts;
  readonly replica: Replica;
  readonly negotiator: Negotiator;
  readonly refresh: RefreshParts;
  readonly place: PlaceOf;
}
