/** Every shape under its name: what `routes.ts` refers to, servers parse with, and the OpenAPI document lists. */
import * as z from 'zod/mini';
import * as admin from './shapes/admin.js';
import * as bootstrap from './shapes/bootstrap.js';
import * as code from './shapes/code.js';
import * as commands from './shapes/commands.js';
import * as envelope from './shapes/envelope.js';
import * as files from './shapes/files.js';
import * as gateway from './shapes/gateway.js';
import * as internal from './shapes/internal.js';
import * as issuer from './shapes/issuer.js';
import * as logins from './shapes/logins.js';
import * as sandboxes from './shapes/sandboxes.js';
import * as sessions from './shapes/sessions.js';
import * as sharing from './shapes/sharing.js';
import * as shells from './shapes/shells.js';
import * as threads from './shapes/threads.js';
import * as whoami from './shapes/whoami.js';

/** A name is used once in all the families, since it becomes a component's name. */
const everything = {
  ...admin,
  ...bootstrap,
  ...code,
  ...commands,
  ...envelope,
  ...files,
  ...gateway,
  ...internal,
  ...issuer,
  ...logins,
  ...sandboxes,
  ...sessions,
  ...sharing,
  ...shells,
  ...threads,
  ...whoami,
};

type Everything = typeof everything;

/** The name of a shape: that of the constant which holds it. */
export type ShapeName = {
  [K in keyof Everything]: Everything[K] extends z.core.$ZodType ? K : never;
}[keyof Everything];

export function isShapeName(value: string): value is ShapeName {
  return Object.hasOwn(everything, value) && isShape(Reflect.get(everything, value));
}

/** All of them, in the order of the alphabet. */
export const SHAPE_NAMES: readonly ShapeName[] = Object.keys(everything).filter(isShapeName).sort();

export function shape<N extends ShapeName>(name: N): Everything[N] {
  return everything[name];
}

/** What a shape is called as a component: `sessionAnswer` is `SessionAnswer`. */
export function componentName(name: ShapeName): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}

function isShape(value: unknown): value is z.core.$ZodType {
  return value instanceof z.core.$ZodType;
}
