// Copies a buffer, four elements at a time.
//
// bindings        @group(0) @binding(0) source: storage, read, array<vec4f>
//                 @group(0) @binding(1) out: storage, read_write, array<vec4f>
// workgroup size  256 × 1 × 1
// reference       rig.programs.reference: copy

@group(0) @binding(0) var<storage, read> source: array<vec4f>;
@group(0) @binding(1) var<storage, read_write> out: array<vec4f>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  for (var i = id.x; i < arrayLength(&out); i += groups.x * 256) {
    out[i] = source[i];
  }
}
