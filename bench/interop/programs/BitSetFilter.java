// The Bloom filter of the Java tutorials, with eight seeds over a java.util.BitSet,
// behind the protocol of ../program.go. Written from its description:
//
//	hash(seed) = for each char c: r = seed*r + c, in ints;  bit = r & (size-1)
//
// Variants: "bytes" writes BitSet.toByteArray(), "object" an ObjectOutputStream.

import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.BitSet;

public class BitSetFilter {
    static final int[] SEEDS = {3, 5, 7, 11, 13, 31, 37, 61};

    final int size, probes;
    BitSet bits;

    BitSetFilter(int size, int probes) {
        this.size = size;
        this.probes = probes;
        bits = new BitSet(size);
    }

    int position(String key, int seed) {
        int r = 0;
        for (int i = 0; i < key.length(); i++) r = seed * r + key.charAt(i);
        return r & (size - 1);
    }

    void add(String key) {
        for (int i = 0; i < probes; i++) bits.set(position(key, SEEDS[i]));
    }

    boolean contains(String key) {
        for (int i = 0; i < probes; i++) if (!bits.get(position(key, SEEDS[i]))) return false;
        return true;
    }

    public static void main(String[] args) throws Exception {
        System.out.println("own program over BitSet, Java " + System.getProperty("java.version"));
        BufferedReader jobs = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = jobs.readLine()) != null; ) {
            try {
                run(line.split("\t"));
                System.out.println("ok");
            } catch (Exception e) {
                System.out.println(e.toString().replace('\n', ' '));
            }
        }
    }

    static void run(String[] job) throws Exception {
        Path file = Path.of(job[1], "filter");
        boolean object = job[2].equals("object");
        BitSetFilter filter = new BitSetFilter(Integer.parseInt(job[5]), Integer.parseInt(job[6]));
        if (job[0].equals("make")) {
            for (String key : keys(Path.of(job[1], "keys"))) filter.add(key);
            if (object) {
                try (ObjectOutputStream out = new ObjectOutputStream(Files.newOutputStream(file))) {
                    out.writeObject(filter.bits);
                }
            } else {
                Files.write(file, filter.bits.toByteArray());
            }
        } else if (object) {
            try (ObjectInputStream in = new ObjectInputStream(Files.newInputStream(file))) {
                filter.bits = (BitSet) in.readObject();
            }
        } else {
            filter.bits = BitSet.valueOf(Files.readAllBytes(file));
        }
        StringBuilder answers = new StringBuilder();
        for (String key : keys(Path.of(job[1], "probes"))) answers.append(filter.contains(key) ? '1' : '0');
        Files.writeString(Path.of(job[1], "answers"), answers);
    }

    static String[] keys(Path path) throws IOException {
        try (DataInputStream in = new DataInputStream(new BufferedInputStream(Files.newInputStream(path)))) {
            String[] keys = new String[in.readInt()];
            for (int i = 0; i < keys.length; i++) keys[i] = new String(in.readNBytes(in.readInt()), StandardCharsets.UTF_8);
            return keys;
        }
    }
}
