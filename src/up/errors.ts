import { meshError } from "../errors.ts";

export class NotACatalogue extends meshError(
  "not-a-catalogue",
  "stalled",
  (f: { place: string; why: string }) =>
    `${f.place}: ${f.why}; expected a folder with mesh.json or nodes/, a bare Git repository, or an http(s) URL; \`mesh init DIR\` makes a new catalogue`,
) {}

export class NotAMeshFolder extends meshError(
  "not-a-mesh-folder",
  "stalled",
  (f: { dir: string }) => `${f.dir}: no mesh is here (no up.json); name its folder with --dir`,
) {}

export class PartFailed extends meshError(
  "part-failed",
  "retry",
  (f: { part: string; why: string; log: string }) =>
    `${f.part}: ${f.why}; its own words are in ${f.log}; put that right and try \`mesh up\` again`,
) {}

export class MeshFolderBroken extends meshError(
  "mesh-folder-broken",
  "stalled",
  (f: { file: string; why: string }) =>
    `${f.file}: ${f.why}; put it back, or remove the folder with \`mesh down --purge\``,
) {}

export class WorkloadsLeft extends meshError(
  "workloads-left",
  "retry",
  (f: { dir: string }) =>
    `${f.dir}: not all of what its hosts ran could be stopped, so the folder that knows of it is kept; run \`mesh down\` again`,
) {}
